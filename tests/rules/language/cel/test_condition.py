from typing import Any

import pytest
import structlog

from rules.language.cel import ExpressionError, ExpressionInvalid, compile_event_condition
from tests.rules.language.cel.events import is_match


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("true", {}, True),
        ('origin == "scheduled" && schedule == "heartbeat"', {}, True),
        ('origin == "scheduled" && schedule == "heartbeat"', {"schedule": "other"}, False),
        ('type == "schedule-fired"', {}, True),
        ('type == "alarm-opened"', {}, False),
        ("severity >= high", {"severity": 6}, True),
        ("severity >= high", {"severity": 3}, False),
        ("severity >= info", {}, False),
        ("severity == 0", {"severity": None}, True),
        (
            "info < warning && warning < average && average < high && high < critical && critical < disaster",
            {},
            True,
        ),
        ('owner == "" && rule == "" && action == ""', {"owner": None}, True),
        ("payload.n > 2", {"payload": {"n": 3}}, True),
        ("payload.n == 3.0", {"payload": {"n": 3}}, True),
        ("payload.a.b[1] == 2", {"payload": {"a": {"b": [1, 2]}}}, True),
        ("has(payload.n) && payload.n > 2", {}, False),
        ('payload.tags.exists(tag, tag == "x")', {"payload": {"tags": ["y", "x"]}}, True),
        ('schedule.matches("^heart.*$")', {}, True),
        ("ts == recorded_at && seq == 7", {}, True),
        ('ts > timestamp("2026-01-01T00:00:00Z")', {}, True),
        ('ts.getHours("America/New_York") == 7', {}, True),
        ('owner == "hälle 𝄞"', {"owner": "hälle 𝄞"}, True),
        ("type(payload.n) == double", {"payload": {"n": 3}}, True),
    ],
)
def test_a_condition_says_whether_an_event_matches(text: str, fields: dict[str, Any], expected: bool) -> None:
    assert is_match(text, **fields) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('orgin == "x"', "column 1: undeclared reference to 'orgin', did you mean 'origin'?"),
        ("sevrity >= high", "column 1: undeclared reference to 'sevrity', did you mean 'severity'?"),
        ("severity >= hihg", "column 13: undeclared reference to 'hihg', did you mean 'high'?"),
        (
            "schedule == heartbeat",
            "column 13: undeclared reference to 'heartbeat', write \"heartbeat\" if it is a text",
        ),
        (
            'orgin == "x" && shedule == "y"',
            "column 1: undeclared reference to 'orgin', did you mean 'origin'?\n"
            "column 17: undeclared reference to 'shedule', did you mean 'schedule'?",
        ),
        ('owner == "ü𝄞" && orgin', "column 18: undeclared reference to 'orgin', did you mean 'origin'?"),
        (
            'origin == "x" &&\n  orgin == "y"',
            "line 2, column 3: undeclared reference to 'orgin', did you mean 'origin'?",
        ),
        ("origin == 1", "column 8: '==' cannot be applied to string and int, put the value in quotes"),
        (
            'severity == "high"',
            "column 10: '==' cannot be applied to int and string, compare with a level: severity >= high",
        ),
        (
            '"high" <= severity',
            "column 8: '<=' cannot be applied to string and int, compare with a level: severity >= high",
        ),
        (
            'severity in ["high"]',
            "column 10: 'in' cannot be applied to int and list(string), "
            "compare with a level: severity >= high",
        ),
        (
            "severity > 1.5",
            "column 10: '>' cannot be applied to int and double, write 1 or double(severity)",
        ),
        ("2.5 < seq", "column 5: '<' cannot be applied to double and int, write 2 or double(seq)"),
        (
            'ts > "2026"',
            "column 4: '>' cannot be applied to timestamp and string, "
            'write timestamp("2026-01-01T00:00:00Z")',
        ),
        (
            'ts - ts > "5m"',
            "column 9: '>' cannot be applied to duration and string, write duration(\"90s\")",
        ),
        ("origin == true", "column 8: '==' cannot be applied to string and bool"),
        ("!severity", "column 1: '!' cannot be applied to int"),
        ('payload.matches("a")', "column 16: 'matches' cannot be applied to map(string, dyn) and string"),
        (
            '"a" + "b" == origin',
            "column 5: '+' cannot join values of type string in a condition, compare the parts instead",
        ),
        (
            "payload.a + payload.b == 3",
            "column 11: '+' needs to know the type of an operand, write int(...) or double(...) around it",
        ),
        ("[1].map(x, x) == [1]", "column 8: 'map' is not available in conditions, use 'exists' or 'all'"),
        (
            "[1].filter(x, x > 0) == [1]",
            "column 11: 'filter' is not available in conditions, use 'exists' or 'all'",
        ),
        ('origin.matchs("a")', "column 14: unknown function 'matchs', did you mean 'matches'?"),
        ("frobnicate(1)", "column 11: unknown function 'frobnicate'"),
        ('origin == "x" &&', "column 17: the condition ends too early"),
        ('origin = "x"', "column 8: unexpected '=', write == to compare"),
        ('origin == "x" and seq == 1', "column 15: unexpected 'and', write &&"),
        ('origin == "x" or seq == 1', "column 15: unexpected 'or', write ||"),
        ('not origin == "x"', "column 5: unexpected 'origin' after 'not', write !(...)"),
        ("seq == 1)", "column 9: unexpected ')'"),
        ("origin == 'x", "column 11: unfinished text 'x, close its quote and double its backslashes"),
        ("seq == 1 # one", "column 10: unexpected '#'"),
        (
            "origin",
            "column 1: a condition must be true or false, this is of type string, compare it with something",
        ),
        ("payload.ok", "column 1: a condition must be true or false, this is of type dyn, write == true"),
        (
            "null",
            "column 1: a condition must be true or false, this is of type null, compare it with something",
        ),
        ("", "column 1: the condition is empty, write true to match everything"),
        ("  \n ", "line 1, column 1: the condition is empty, write true to match everything"),
        ("true\0", "column 5: the character U+0000 cannot be part of a condition, remove it"),
        ('origin == "\ud800"', "column 12: the character U+D800 cannot be part of a condition, remove it"),
        (
            "(" * 40 + "true" + ")" * 40,
            "column 1: the condition is nested too deep, at most 32 levels are accepted",
        ),
        (
            "1" + "+1" * 60 + " == 61",
            "column 1: the condition is nested too deep, at most 32 levels are accepted",
        ),
        ('origin.matches("(")', "column 16: invalid regular expression '(': missing ): ("),
        (
            "matches(origin, 'a{5000}')",
            "column 17: invalid regular expression 'a{5000}': invalid repetition size: {5000}",
        ),
        (
            'ts.getHours("Europe/Lodnon") == 1',
            "column 13: unknown timezone 'Europe/Lodnon': did you mean 'Europe/London'?",
        ),
        (
            'ts > timestamp("soon")',
            "column 16: invalid timestamp 'soon', write it as \"2026-01-01T00:00:00Z\"",
        ),
        (
            'ts - ts > duration("1d")',
            "column 20: invalid duration '1d', write hours or less, such as 90s, 10m or 36h",
        ),
    ],
)
def test_a_wrong_condition_is_refused_with_its_column_and_a_hint(text: str, message: str) -> None:
    with pytest.raises(ExpressionInvalid) as refused:
        compile_event_condition(text)
    assert str(refused.value) == message


def test_a_condition_of_2000_characters_is_accepted_and_a_longer_one_refused() -> None:
    text = "true && ".ljust(1996) + "true"
    assert is_match(text)
    with pytest.raises(ExpressionInvalid, match="has 2001 characters, at most 2000 are accepted"):
        compile_event_condition(text + " ")


def test_macros_may_be_nested_twice_and_not_three_times() -> None:
    two = "payload.l.exists(a, a.all(b, b > 0)) || payload.m.exists_one(c, c == 1)"
    assert is_match(two, payload={"l": [[1, 2]], "m": []})
    with pytest.raises(ExpressionInvalid, match="macros are nested 3 deep, at most 2 are accepted"):
        compile_event_condition("payload.l.exists(a, a.all(b, b.exists(c, true)))")
    in_the_list = "[payload.l.exists(a, a.all(b, b.exists(c, true)))].exists(d, d)"
    with pytest.raises(ExpressionInvalid, match="macros are nested 3 deep"):
        compile_event_condition(in_the_list)


def test_an_unknown_schedule_in_a_condition_is_refused_when_the_schedules_are_known() -> None:
    text = 'schedule == "hartbeat" || (schedule != "" && schedule in ["x", "heartbeat"])'
    assert compile_event_condition(text).schedules == ("hartbeat", "x", "heartbeat")
    with pytest.raises(ExpressionInvalid) as refused:
        compile_event_condition(text, known_schedules={"heartbeat", "daily-digest"})
    assert refused.value.errors == (
        ExpressionError(1, 13, "unknown schedule 'hartbeat', did you mean 'heartbeat'?"),
        ExpressionError(1, 59, "unknown schedule 'x', no schedule of this name is defined"),
    )


def test_a_condition_may_ask_for_events_without_a_schedule() -> None:
    condition = compile_event_condition('schedule == ""', known_schedules={"heartbeat"})
    assert is_match(condition, schedule=None)


def test_the_variable_of_a_macro_is_not_taken_for_the_schedule() -> None:
    condition = compile_event_condition(
        'payload.l.exists(schedule, schedule == "anything")', known_schedules={"heartbeat"}
    )
    assert condition.schedules == ()
    assert is_match(condition, payload={"l": ["anything"]})


def test_an_evaluation_error_is_no_match_and_is_logged_once() -> None:
    condition = compile_event_condition("payload.missing == 1", rule="my-rule")
    with structlog.testing.capture_logs() as logs:
        assert [is_match(condition) for _ in range(3)] == [False, False, False]
    assert [(entry["event"], entry["rule"], entry["hint"]) for entry in logs] == [
        ("condition failed", "my-rule", "guard members with has(payload.key) or has(labels.name)")
    ]
    assert condition.error_count == 3
    assert condition.last_error is not None
    assert "missing" in condition.last_error


def test_a_match_and_a_plain_mismatch_are_no_errors() -> None:
    condition = compile_event_condition("seq == 7")
    assert is_match(condition)
    assert not is_match(condition, seq=8)
    assert condition.error_count == 0
    assert condition.last_error is None
