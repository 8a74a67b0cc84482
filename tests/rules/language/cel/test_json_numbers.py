"""A number of JSON is a double in conditions, whether it was sent with a fraction or not."""

from __future__ import annotations

import pytest

from rules.language.cel import ExpressionInvalid, compile_event_condition
from rules.language.cel.environment import event_activation, event_environment
from rules.language.cel.json_numbers import as_doubles
from rules.language.cel.series import compile_series_condition
from rules.language.cel.steps import (
    branch_activation,
    compile_branch_condition,
    compile_wait_condition,
    wait_activation,
)

CONDITIONS = [
    "payload.count + 1.0 > 3.0",
    "payload.count - payload.other > 2",
    "payload.count == 4",
    "payload.count > 3",
    "payload.count in [4, 5]",
    "payload.list[payload.other] == 4",
    "payload.nested.list.exists(x, x * 2.0 == 8.0)",
    "int(payload.count) % 2 == 0",
    'string(payload.count) == "4"',
]


@pytest.mark.parametrize("number", [4, 4.0])
@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_over_a_payload_holds_for_both_ways_to_write_a_number(text: str, number: float) -> None:
    payload = {"count": number, "other": number - 3, "list": [0, number], "nested": {"list": [number]}}
    activation = event_activation(event_environment(), {"payload": payload})
    assert compile_event_condition(text).evaluate(activation) is True


@pytest.mark.parametrize("number", [4, 4.0])
def test_conditions_of_steps_read_numbers_as_doubles(number: float) -> None:
    branch = compile_branch_condition("answers.x.n - payload.n == 0.0 && alarm.payload.n - 1.0 == 3.0")
    values = {"n": number}
    activation = branch_activation({"payload": values}, {"payload": values}, {"x": values})
    assert branch.evaluate(activation) is True
    wait = compile_wait_condition("payload.n - trigger.payload.n == 0.0")
    assert wait.evaluate(wait_activation({"payload": values}, {"payload": values})) is True


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("value - 5 > 60", 7),
        ("5 + value > 60", 3),
        ("previous / 2 > value", 10),
        ("value > 3.0 && value * 2 > 3", 22),
        ("value % 2 == 0", 7),
    ],
)
def test_a_calculation_that_always_fails_is_an_error_with_its_position(text: str, column: int) -> None:
    with pytest.raises(ExpressionInvalid) as refused:
        compile_series_condition(text, kind=None)
    assert [error.column for error in refused.value.errors] == [column]


@pytest.mark.parametrize("text", ["value - 5.0 > 60.0", "value > 60", "-value < 3", "value * value > 4.0"])
def test_a_calculation_with_doubles_is_accepted(text: str) -> None:
    assert compile_series_condition(text, kind=None).evaluate({"value": 70.0}) is True


def test_texts_booleans_and_null_stay_as_they_are() -> None:
    values = {"a": True, "b": "1", "c": None, "d": [False, 2, {"e": 3}]}
    converted = as_doubles(values)
    assert converted == values
    assert [type(converted["a"]), type(converted["d"][1]), type(converted["d"][2]["e"])] == [
        bool,
        float,
        float,
    ]
