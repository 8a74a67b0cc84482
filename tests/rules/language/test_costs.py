"""F14, F15: what a payload and a rule can cost."""

from __future__ import annotations

import time

import pytest

from rules.actions.steps.messages import fill_message
from rules.delivery.message import Message
from rules.language.cel import compile_event_condition
from rules.language.cel.errors import ExpressionInvalid
from rules.language.templates import fill, fill_text
from rules.language.templates.budget import MAX_CPU_S
from tocsin.core.errors import InvalidInput


@pytest.mark.parametrize(
    "text",
    [
        "ts.getHours(payload.z) == 5",
        "ts.getHours(owner) == 5",
        "ts.getDayOfWeek(string(payload.z)) == 1",
    ],
)
def test_a_timezone_from_data_is_rejected(text: str) -> None:
    """The engine opens it as a path: a pipe hangs the worker, and each name stays in memory."""
    with pytest.raises(ExpressionInvalid, match="must be written as a text"):
        compile_event_condition(text)


def test_a_timezone_as_a_literal_is_accepted() -> None:
    compile_event_condition('ts.getHours("Europe/London") == 5')
    compile_event_condition("ts.getHours() == 5")


@pytest.mark.parametrize(
    "template",
    [
        "{{ payload.a | reject('in', payload.b) | list | length }}",
        "{{ payload.a | select('in', payload.b) | list | length }}",
        "{% for x in payload.a %}{{ x is in payload.b }}{% endfor %}",
    ],
)
def test_tests_of_templates_are_counted(template: str) -> None:
    data = {"payload": {"a": list(range(30_000)), "b": list(range(30_000, 60_000))}}
    began_s = time.thread_time()
    with pytest.raises(InvalidInput, match="it does too much"):
        fill_text(template, data)
    assert time.thread_time() - began_s < MAX_CPU_S + 1.0


def test_all_texts_of_a_payload_share_one_budget() -> None:
    one = "{% for x in range(9000) %}{{ x }}{% endfor %}"
    fill({"a": one}, {})
    with pytest.raises(InvalidInput, match="it does too much"):
        fill({f"k{number}": one for number in range(20)}, {})


def test_all_forms_of_a_message_share_one_budget() -> None:
    """F15: subject, text, html and payload had a budget each."""
    one = "{% for x in range(9000) %}{% if x > 1 and x > 2 %}{{ x }}{% endif %}{% endfor %}"
    default = Message("default", "default text")
    templates = {"subject": one * 4, "text": one * 4, "html": one * 4, "payload": {"a": one * 4}}
    began_s = time.thread_time()
    message = fill_message(default, templates, {})
    assert time.thread_time() - began_s < MAX_CPU_S + 1.0
    assert str(message.problem).count("it does too much") >= 1
    assert message.payload is None or "a" not in message.payload


def test_the_path_of_a_missing_value_is_found_in_large_data() -> None:
    data = {"payload": {"big": list(range(110_000)), "a": {"b": {"x": {}}}}}
    began_s = time.thread_time()
    with pytest.raises(InvalidInput, match=r"there is no 'payload\.a\.b\.x\.nope'"):
        fill_text("{{ payload.a.b.x.nope }}", data)
    assert time.thread_time() - began_s < 1.0
