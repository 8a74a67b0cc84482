from datetime import UTC, datetime
from typing import Any

import pytest

from rules.language.templates import fill, fill_html, fill_subject, fill_text
from tocsin.core.errors import InvalidInput

EVENT: dict[str, Any] = {
    "schedule": "daily-digest",
    "owner": "",
    "severity": 4,
    "ts": datetime(2026, 3, 8, 12, tzinfo=UTC),
    "now": datetime(2026, 3, 8, 12, 3, 20, 500, tzinfo=UTC),
    "payload": {
        "count": 3,
        "device": {"name": "pump {{ owner }}"},
        "list": [1, "b"],
        "dash-ed": True,
        "items": [None],
        "html": "<b>&",
        "seconds": 5400,
        "at": "2026-07-01T09:00:00+02:00",
        "alarms": [{"rule": "hot", "owner": "a", "value": 2.5}, {"rule": "cold", "owner": "b", "value": 1}],
    },
}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("no template", "no template"),
        ("{{ schedule }} fired", "daily-digest fired"),
        ("{{schedule}}/{{  severity  }}", "daily-digest/4"),
        ("at {{ ts }}", "at 2026-03-08T12:00:00Z"),
        ("{{ payload.device.name }}!", "pump {{ owner }}!"),
        (
            "n={{ payload.count }} l={{ payload.list }} d={{ payload['dash-ed'] }}",
            'n=3 l=[1, "b"] d=true',
        ),
        ("owner '{{ owner }}'", "owner ''"),
        ("{ not one }", "{ not one }"),
        ("{{ payload.items }} {{ payload.list.1 }} {{ payload.list[-1] }}", "[null] b b"),
        ("{{ payload.html }}", "<b>&"),
        ("ends\n", "ends\n"),
    ],
)
def test_values_are_filled_in_from_the_data(template: str, filled: str) -> None:
    assert fill_text(template, EVENT) == filled


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{{ payload.count * 2 + 1 }}", "7"),
        ("{{ payload.count > 2 and not owner }}", "true"),
        ("{{ 'many' if payload.count > 2 else 'few' }}", "many"),
        ("{{ schedule ~ '-' ~ severity }}", "daily-digest-4"),
        ("{{ 'a' + 'b' }}", "ab"),
        ("{{ payload.seconds | duration }}", "1h30m"),
        ("{{ (now - ts) | duration }}, {{ now - ts }}", "3m20s, 3m20s"),
        ("{{ ts | since }}", "3m20s"),
        ("{{ now | local('America/New_York') }}", "2026-03-08 08:03 EDT"),
        ("{{ payload.at | local('Europe/Berlin', '%d.%m. %H:%M') }}", "01.07. 09:00"),
        ("{{ payload.device | json }}", '{"name": "pump {{ owner }}"}'),
        ("{{ schedule | upper }} {{ schedule | replace('-', ' ') | title }}", "DAILY-DIGEST Daily Digest"),
        ("{{ payload.list | join(', ') }}", "1, b"),
        ("{{ payload.alarms | map(attribute='rule') | sort | join('/') }}", "cold/hot"),
        ("{{ payload.alarms | sum(attribute='value') | round(1) }}", "3.5"),
        ("{{ payload.alarms | selectattr('owner', 'eq', 'a') | list | length }}", "1"),
        ("{{ payload.nope | default('-') }} {{ payload.nope.deeper | default(0) }}", "- 0"),
        ("{{ payload.nope is defined }} {{ 'b' in payload.list }}", "false true"),
        ("{{ range(3) | list }} {{ range(3) }}", "[0, 1, 2] [0, 1, 2]"),
        ("{{ '12' | int + 1 }} {{ 'x' | int }}", "13 0"),
        (
            "{% for one in payload.alarms if one.value > 1 %}{{ loop.index }}. {{ one.rule }}\n{% endfor %}",
            "1. hot\n",
        ),
        (
            "{% for k, v in payload.alarms[1] | dictsort %}{{ k }}={{ v }};{% endfor %}",
            "owner=b;rule=cold;value=1;",
        ),
        (
            "{% for o, all in payload.alarms | groupby('owner') %}{{ o }}{{ all | length }}{% endfor %}",
            "a1b1",
        ),
        ("{% set n = payload.count %}\n{% if n == 3 %}\nthree\n{% else %}\nother\n{% endif %}\n", "three\n"),
    ],
)
def test_a_template_can_calculate_choose_loop_and_format(template: str, filled: str) -> None:
    assert fill_text(template, EVENT) == filled


def test_a_text_that_is_one_expression_keeps_the_type_of_the_value() -> None:
    template = {
        "n": "{{ payload.count }}",
        "all": "{{payload.list}}",
        "ts": "{{ ts }}",
        "x": ["{{ severity }}", 1],
        "more": "{{ payload.count + 1 }}",
        "rules": "{{ payload.alarms | map(attribute='rule') }}",
        "text": "{{ payload.count }} ",
        "none": "{{ payload.items[0] }}",
        "plain": None,
    }
    assert fill(template, EVENT) == {
        "n": 3,
        "all": [1, "b"],
        "ts": "2026-03-08T12:00:00Z",
        "x": [4, 1],
        "more": 4,
        "rules": ["hot", "cold"],
        "text": "3 ",
        "none": None,
        "plain": None,
    }
    assert fill("{{ payload.count }}{{ payload.count }}", EVENT) == "33"


def test_what_is_filled_in_is_a_copy_of_the_data() -> None:
    filled = fill("{{ payload.list }}", EVENT)
    assert isinstance(filled, list)
    filled.append("x")
    assert EVENT["payload"]["list"] == [1, "b"]


def test_values_are_escaped_in_html_and_the_text_of_the_template_is_not() -> None:
    template = "<p>{{ payload.html }}</p>{{ payload.html | upper }}{{ [1] }}{{ payload.html ~ '<' }}"
    assert fill_html(template, EVENT) == "<p>&lt;b&gt;&amp;</p>&lt;B&gt;&amp;[1]&lt;b&gt;&amp;&lt;"


def test_a_value_in_a_subject_becomes_one_token() -> None:
    data = {"owner": "a.*.>", "empty": ""}
    assert fill_subject("x.{{ owner }}.{{ empty }}.y", data) == "x.a%2E%2A%2E%3E._.y"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            "{{ payload.nope }}",
            "there is no 'payload.nope': write {{ payload.nope | default('-') }} if it may be missing",
        ),
        ("{{ payload.device.a.b.c }}", "there is no 'payload.device.a'"),
        ("{{ payload.alarms[0].nope }}", "there is no 'payload.alarms[0].nope'"),
        ("{{ payload.list[7] }}", "there is no 'payload.list.7'"),
        ("{{ payload.count.deeper }}", "'3' has no part 'deeper'"),
        ("{{ unknown_name }}", "there is no 'unknown_name'"),
        ("{{ payload.nope + 1 }}", "there is no 'payload.nope'"),
        ("{% if payload.nope %}{% endif %}", "there is no 'payload.nope'"),
        ("{% for x in payload.nope %}{% endfor %}", "there is no 'payload.nope'"),
        ("{{ payload.nope | upper }}", "there is no 'payload.nope'"),
        ("{{ payload.list | round }}", "'[1, \"b\"]' is not a number"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ owner < 1 }}", "'<' not supported"),
        ("{{ owner | local('UTC') }}", "'' is not an instant"),
        ("{{ ts | local('Europe/Lodnon') }}", "did you mean 'Europe/London'?"),
        ("{{ ts | local('UTC', '%999999999Y') }}", "is not a format of times"),
        ("{{ owner | duration }}", "'' is not a number"),
        ("{{ 'x' | round(99) }}", "write 0 to 12"),
    ],
)
def test_what_cannot_be_filled_in_is_an_error_that_says_why(template: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        fill_text(template, EVENT)
    assert str(refused.value).startswith(f"the template {template!r} cannot be filled: ")
    assert message in str(refused.value)


def test_the_error_shows_the_line_at_fault() -> None:
    with pytest.raises(InvalidInput, match=r"the template 'b \{\{ payload.nope \}\}' \(line 2\) cannot"):
        fill_text("a\nb {{ payload.nope }}\nc", EVENT)


def test_since_needs_the_current_time() -> None:
    with pytest.raises(InvalidInput, match="'since' needs 'now'"):
        fill_text("{{ ts | since }}", {"ts": EVENT["ts"]})


@pytest.mark.parametrize("template", ['{{ "\\x00" }}', '{{ "\\ud800" }}'])
def test_a_text_that_could_not_be_stored_is_refused(template: str) -> None:
    with pytest.raises(InvalidInput, match="NUL or a lone surrogate"):
        fill_text(template, EVENT)
    with pytest.raises(InvalidInput, match="NUL and lone surrogates"):
        fill({"k": template}, EVENT)
