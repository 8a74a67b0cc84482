"""Known defects of the pinned expression engine, each with a test that the wrapper avoids it."""

import os
import subprocess
import sys
from datetime import datetime
from typing import Any

import pytest
from cel_expr_python import cel

from rules.language.cel import ExpressionInvalid, compile_event_condition, event_activation, event_environment
from rules.language.cel.bound_facts import BoundFacts
from rules.language.cel.series import ValueKind, compile_series_condition, series_environment
from tests.paths import ROOT
from tests.rules.language.cel.events import NOON, event, is_match
from tocsin.core.errors import InvalidInput


def test_the_engine_cuts_a_text_at_nul_so_events_with_nul_are_refused() -> None:
    raw = cel.NewEnv(variables={"s": cel.Type.STRING}).compile('s == "ab"')
    assert raw.eval(data={"s": "ab\0c"}).value() is True
    for fields in ({"schedule": "ab\0c"}, {"payload": {"s": "ab\0c"}}, {"payload": {"ab\0c": 1}}):
        with pytest.raises(InvalidInput, match=r"U\+0000"):
            is_match("true", **fields)


def test_an_expression_that_can_yield_null_is_never_evaluated() -> None:
    for text in ("null", "payload.x", "dyn(null)", "true ? null : null", "payload.l[0]"):
        with pytest.raises(ExpressionInvalid, match="a condition must be true or false"):
            compile_event_condition(text)


def test_a_dynamic_value_inside_a_boolean_cannot_leak_out_as_a_match() -> None:
    values: list[Any] = [None, "text", 1, [], {}]
    for value in values:
        assert not is_match("payload.x || false", payload={"x": value})
        assert not is_match("true && payload.x", payload={"x": value})


def test_an_error_comes_back_as_a_text_and_is_no_match() -> None:
    condition = compile_event_condition("1 / seq == 1")
    assert not is_match(condition, seq=0)
    assert condition.last_error == "INVALID_ARGUMENT: divide by zero"


def test_an_error_does_not_hide_the_match_of_another_operand() -> None:
    assert is_match("1 / seq == 1 || true", seq=0)


def test_an_exhausted_iteration_budget_raises_in_the_engine_and_is_no_match() -> None:
    condition = compile_event_condition("payload.l.all(a, payload.l.all(b, a + double(b) >= 0.0))")
    assert not is_match(condition, payload={"l": list(range(200))})
    assert condition.last_error is not None
    assert "budget" in condition.last_error


def test_a_lone_surrogate_is_refused() -> None:
    for fields in ({"owner": "\ud800"}, {"payload": {"a": ["\udfff"]}}):
        with pytest.raises(InvalidInput, match=r"U\+D"):
            is_match("true", **fields)


def test_data_that_would_crash_the_engine_is_refused() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(InvalidInput, match="nested more than 64 deep"):
        is_match("true", payload={"a": deep})


@pytest.mark.parametrize("value", [(1,), {1}, 2**64, b"x", NOON])
def test_data_that_would_poison_the_whole_payload_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^payload.b is "):
        is_match("payload.a == 1", payload={"a": 1, "b": value})


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(InvalidInput, match="pass an aware datetime"):
        is_match("true", ts=datetime(2026, 1, 1))


def test_text_cannot_be_multiplied_inside_a_condition() -> None:
    for text in (
        "payload.a + payload.a == payload.a",
        'payload.l.exists(x, payload.a + payload.a == "")',
        "[payload.a].map(x, x + x) == []",
        "[1] + [1] == [1]",
        'b"a" + b"a" == b"a"',
    ):
        with pytest.raises(ExpressionInvalid):
            compile_event_condition(text)


def test_a_sum_with_one_typed_operand_cannot_join_texts() -> None:
    condition = compile_event_condition("payload.a + 1.0 == 3.0")
    assert is_match(condition, payload={"a": 2})
    assert not is_match(condition, payload={"a": "2"})


def test_a_hostile_regular_expression_is_linear() -> None:
    assert not is_match('owner.matches("^(a+)+$")', owner="a" * 100_000 + "b")


def test_type_is_a_field_of_the_event_although_the_language_has_a_type_function() -> None:
    assert is_match('type == "schedule-fired" && type(seq) == int')


def test_timezone_functions_read_the_tz_data_of_this_process_not_of_the_host() -> None:
    # The wheel's release keeps Vancouver on permanent daylight time from 2026; older host data does
    # not.
    script = (
        "from tests.rules.language.cel.events import is_match\n"
        "assert is_match('ts.getHours(\"America/Vancouver\") == 5')\n"
        "assert is_match('ts.getHours(\"Europe/London\") == 12')\n"
    )
    for tzdir in ("/nonexistent", "/usr/share/zoneinfo"):
        environment = os.environ | {"TZDIR": tzdir}
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_one_activation_serves_many_conditions() -> None:
    activation = event_activation(event_environment(), event(payload={"n": 5}))
    conditions = [compile_event_condition(f"payload.n == {n}") for n in range(10)]
    assert [condition.matches(activation) for condition in conditions].index(True) == 5


@pytest.mark.parametrize("value", [66.0, 3, True, "x", None, 2**70, float("inf")])
@pytest.mark.parametrize("text", ["value > 65.0", "value == 3.0 && rate > 1.0", 'labels.zone == "a"', "true"])
def test_plain_variables_give_the_same_result_as_their_activation(text: str, value: Any) -> None:
    kinds: tuple[ValueKind | None, ...] = ("number", None)
    for kind in kinds:
        condition = compile_series_condition(text, kind=kind)
        for facts in ({"value": value}, {"value": value, "rate": 2.0, "labels": {"zone": "a"}}, {}):
            alone = condition.evaluate(facts), condition.last_error
            activation = BoundFacts(series_environment(kind), facts)
            assert (condition.evaluate(activation), condition.last_error) == alone
