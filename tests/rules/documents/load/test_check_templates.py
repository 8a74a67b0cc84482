"""Errors in templates are reported when a file is loaded, with the exact position."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel

from rules.documents.load import RulesInvalid, load_text
from rules.documents.load.check_templates import _templates
from rules.language.templates import check_template
from schemas.values.template_text import TemplateMark, TextTemplate


def problems_of(text: str) -> list[tuple[int, int, str]]:
    with pytest.raises(RulesInvalid) as refused:
        load_text(text)
    return [(problem.line, problem.column, problem.message) for problem in refused.value.problems]


def publish_action(subject: str) -> str:
    return f"action:\n  name: a\n  publish:\n    subject: '{subject}'\n"


@pytest.mark.parametrize(
    "message",
    [
        "'{{ owner }} {{ shedule }}'",
        '"\\u00fc \\"{{ shedule }}\\""',
        "|\n      {{ owner }}\n      and {{ shedule }}",
        "hello {{ shedule }}",
    ],
)
def test_an_error_in_a_template_has_the_position_of_the_exact_character(message: str) -> None:
    text = f"action:\n  name: a\n  log:\n    message: {message}\n"
    lines = text.split("\n")
    line = next(number for number, content in enumerate(lines) if "shedule" in content)
    expected = "'log.message' of action 'a': unknown name 'shedule', did you mean 'schedule'?"
    assert problems_of(text) == [(line + 1, lines[line].index("shedule") + 1, expected)]


def test_every_error_of_a_payload_is_found_at_any_depth() -> None:
    text = "action:\n  name: a\n  publish:\n    subject: s\n    payload:\n"
    text += "      ok: '{{ payload.x }}'\n      deep: [1, {k: '{{ ownr }}'}]\n      other: '{{ 1 +'\n"
    assert problems_of(text) == [
        (7, 25, "'publish.payload.deep.1.k' of action 'a': unknown name 'ownr', did you mean 'owner'?"),
        (8, 20, "'publish.payload.other' of action 'a': unexpected end of template"),
    ]


@pytest.mark.parametrize(
    "subject", ["a", "reports.digest", "plants.{{ owner }}.x", "{{ schedule }}.{{payload.k}}"]
)
def test_a_subject_may_hold_values_of_the_event(subject: str) -> None:
    assert load_text(publish_action(subject)).documents


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        ("a b", "is not a subject"),
        ("a..b", "is not a subject"),
        (".a", "is not a subject"),
        ("a.", "is not a subject"),
        ("a.*", "is not a subject"),
        ("a.>", "is not a subject"),
        ("a*b", "is not a subject"),
        ("$JS.API", "is reserved"),
        ("tocsin.v1.event.x", "is reserved"),
        ("tocsin", "is reserved"),
        ("_INBOX.x", "is reserved"),
        ("a.{{ nope }}", "unknown name 'nope'"),
        ("a.{{ owner", "unexpected end of template, expected '}}'"),
        ("a.{% if owner %}b{% endif %}", "a subject cannot have tags"),
    ],
)
def test_a_subject_that_cannot_be_published_is_rejected(subject: str, message: str) -> None:
    ((line, _, said),) = problems_of(publish_action(subject))
    assert line == 4
    assert said.startswith("'publish.subject' of action 'a': ")
    assert message in said


class _Digest(BaseModel):
    body: Annotated[str, TemplateMark("html", names=("rows", "now"), with_parts=())] | None = None
    lines: tuple[TextTemplate, ...] = ()


def test_the_mark_of_a_field_has_the_names_of_its_template() -> None:
    digest = _Digest(body="{{ rows }}{{ owner }}", lines=("{{ owner }}", "{{ rows }}"))
    found = {
        path: [problem.message for problem in check_template(source, mark.names)]
        for path, mark, source in _templates(digest)
    }
    assert found[("body",)] == ["unknown name 'owner', known are rows, now"]
    assert found[("lines", 0)] == []
    (problem,) = found[("lines", 1)]
    assert problem.startswith("unknown name 'rows', known are origin, ")
