import re

import pytest

from rules.language.templates import TemplateProblem, check_template
from rules.language.templates.compile import compiled
from rules.language.templates.filters import FILTERS
from tests.paths import ROOT

NAMES = ("owner", "payload", "schedule")


def problems_of(template: str) -> list[TemplateProblem]:
    return list(check_template(template, NAMES, scalars=("owner", "schedule")))


@pytest.mark.parametrize(
    "template",
    [
        "",
        "plain { text } % #",
        "{{ owner }} {{ payload.x['y'].z | default('-') }}",
        "{% for x in payload.list %}{{ loop.index }}{{ x }}{% else %}none{% endfor %}",
        "{% set n = 1 %}{{ n }}{% if owner in ['a', 'b'] %}{% endif %}{# a comment #}",
        "{% raw %}{{ unknown_name }}{% endraw %}",
        "{{ range(3) }}",
        "{{ payload.list[1:2] }}",
    ],
)
def test_a_right_template_has_no_problem(template: str) -> None:
    assert problems_of(template) == []


@pytest.mark.parametrize(
    ("template", "line", "column", "message"),
    [
        ("{{ scheduel }}", 1, 4, "unknown name 'scheduel', did you mean 'schedule'?"),
        ("{{ x }}", 1, 4, "unknown name 'x', known are owner, payload, schedule"),
        ("a\n  {{ owner }} {{ ownr }}", 2, 18, "unknown name 'ownr', did you mean 'owner'?"),
        ("x  {%- if owner -%} {{ ownr }}{% endif %}", 1, 24, "unknown name 'ownr', did you mean 'owner'?"),
        ("{{ schedule.name }}", 1, 4, "'schedule.name' cannot be filled: 'schedule' has no parts"),
        ("{{}}", 1, 3, "expected an expression, got '}}'"),
        ("a {{ owner", 1, 6, "unexpected end of template, expected '}}'"),
        ("a\n{% if owner %}", 2, 13, "'{% if %}' is not closed: write '{% endif %}'"),
        ("{% fi owner %}", 1, 4, "unknown tag 'fi', there are if, for and set"),
        ("ab {{ owner ? }}", 1, 13, "unexpected char '?' at 12"),
        ("{{ (owner] }}", 1, 10, "unexpected ']', expected ')'"),
        ("{{ owner | uper }}", 1, 12, "unknown filter 'uper', did you mean 'upper'?"),
        ("{{ owner is defind }}", 1, 10, "unknown test 'defind', did you mean 'defined'?"),
        (
            "{{ payload.name.upper() }}",
            1,
            16,
            "'upper()' is not available: values have no methods here, write '| upper'",
        ),
        ("{{ owner() }}", 1, 4, "only range() can be called in a template"),
        ("{{ [owner] }}", 1, 4, "a list or mapping written in a template holds constants only"),
        ("{{ 2 ** 3 }}", 1, 4, "'**' is not available in a template"),
        ("{% macro m() %}{% endmacro %}", 1, 4, "'{% macro %}' is not available in a template"),
        ("{% include 'x' %}", 1, 4, "'{% include %}' is not available in a template"),
        ("{% import 'x' as y %}", 1, 4, "'{% import %}' is not available in a template"),
        ("{% from 'x' import y %}", 1, 4, "'{% from %}' is not available in a template"),
        ("{% extends 'x' %}", 1, 4, "'{% extends %}' is not available in a template"),
        ("{% block x %}{% endblock %}", 1, 4, "'{% block %}' is not available in a template"),
        ("{% with x = 1 %}{% endwith %}", 1, 4, "'{% with %}' is not available in a template"),
        ("{% filter upper %}{% endfilter %}", 1, 4, "'{% filter %}' is not available in a template"),
        ("{% set x %}{% endset %}", 1, 4, "'{% set ... endset %}' is not available in a template"),
        (
            "{% autoescape false %}{% endautoescape %}",
            1,
            4,
            "'{% autoescape %}' is not available in a template",
        ),
        (
            "{% for x in payload recursive %}{% endfor %}",
            1,
            4,
            "a recursive loop is not available in a template",
        ),
        ("{{ self }}", 1, 4, "'self' is not available in a template"),
        ("{{ loop }}", 1, 4, "unknown name 'loop', known are owner, payload, schedule"),
        ("{{ namespace }}", 1, 4, "unknown name 'namespace', known are owner, payload, schedule"),
        ("{{ " + "9" * 5000 + " }}", 1, 1, "the template has a number that is too long, shorten it"),
        (
            "{{ " + "(" * 900 + "1" + ")" * 900 + " }}",
            1,
            1,
            "the template is nested too deep, write it simpler",
        ),
        (
            "{% if owner %}" * 150 + "{% endif %}" * 150,
            1,
            844,
            "the template is nested too deep here, write it simpler",
        ),
        ("x" * 20_001, 1, 1, "the template is longer than 20000 characters, shorten it"),
    ],
)
def test_a_problem_has_its_place_and_says_what_to_write(
    template: str, line: int, column: int, message: str
) -> None:
    assert problems_of(template) == [(line, column, message)]


def test_all_unknown_names_are_reported_at_once() -> None:
    assert [problem[:2] for problem in problems_of("{{ a }}\n{{ owner }}{{ b }}{{ a }}")] == [
        (1, 4),
        (2, 15),
        (2, 22),
    ]


@pytest.mark.parametrize(
    ("first", "repeated", "last"),
    [
        ("{{ owner", " | upper", " }}"),
        ("{{ payload", " + 1", " }}"),
        ("{{ payload", " and 1", " }}"),
        ("{{ payload", " ~ 1", " }}"),
        ("{{ payload", "[0]", " }}"),
        ("{{ payload", " if 1 else 1", " }}"),
        ("", "{% if owner %}", "{% endif %}"),
        ("", "{% for i in [1] %}", "{% endfor %}"),
    ],
)
def test_what_passes_the_check_for_depth_can_be_compiled(first: str, repeated: str, last: str) -> None:
    passing = 0
    for depth in range(1, 80, 2):
        template = f"{first}{repeated * depth}{last * (1 if first else depth)}"
        if not problems_of(template):
            passing += 1
            compiled(template, "text")
    assert passing > 5


def test_the_documentation_names_every_filter() -> None:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    section = page.partition("- Filters: ")[2]
    assert sorted(re.findall(r"`(\w+)`", section.partition("\n\n")[0])) == sorted(FILTERS)
