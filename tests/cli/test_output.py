"""Columns, distances and instants as text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tocsin.cli.output import (
    compact,
    countdown,
    due_text,
    json_text,
    local_text,
    printable,
    since_text,
    table_lines,
    utc_text,
)

_AT = datetime(2026, 3, 8, 7, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "in 0s"),
        (0.9, "in 0s"),
        (59, "in 59s"),
        (60, "in 1m"),
        (252, "in 4m12s"),
        (3_599, "in 59m59s"),
        (3_661, "in 1h1m"),
        (86_400 + 59, "in 1d"),
        (90_000, "in 1d1h"),
        (-8, "8s ago"),
        (-0.5, "in 0s"),
    ],
)
def test_a_countdown_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert countdown(timedelta(seconds=seconds)) == text


def test_a_pending_time_in_the_past_is_due_now() -> None:
    assert due_text(timedelta(seconds=-8)) == "due now"
    assert due_text(timedelta(seconds=8)) == "in 8s"


def test_a_past_time_never_lies_ahead() -> None:
    now = datetime(2026, 3, 8, 7, 0, tzinfo=UTC)
    assert [since_text(now + timedelta(seconds=seconds), now) for seconds in (-8, -0.5, 0.2)] == [
        "8s ago",
        "just now",
        "just now",
    ]


def test_instants_have_milliseconds_only_if_there_are_any() -> None:
    assert utc_text(_AT) == "2026-03-08 07:00:00Z"
    assert utc_text(_AT.replace(microsecond=20_400)) == "2026-03-08 07:00:00.020Z"
    assert local_text(_AT, "America/New_York") == "Sun 2026-03-08 03:00:00 EDT"


def test_columns_are_aligned_by_what_a_terminal_shows() -> None:
    assert table_lines(("A", "B"), [("日本", "x"), ("a\tb", ""), ("abcde", "y")]) == [
        "A      B",
        "日本   x",
        "a\\tb",
        "abcde  y",
    ]


def test_control_characters_are_shown_and_never_sent() -> None:
    assert printable("a\x1b[31m\nb\x85é") == "a\\x1b[31m\\nb\\x85é"


def test_values_of_a_row_fit_on_one_line() -> None:
    assert [compact(value) for value in (None, {"a": [1]}, timedelta(minutes=90), _AT, "x")] == [
        *("none", '{"a": [1]}', "1h30m", "2026-03-08T07:00:00Z", "x"),
    ]


def test_json_has_no_character_that_a_terminal_interprets() -> None:
    """F25: C1 and bidirectional controls are escaped, and the value is the same."""
    value = {"owner\x9b31m": ["\u202egnp", "\x1b[2J", "\u2028", "\U000e0041", "ü日本"]}
    for indent in (None, 2):
        text = json_text(value, indent=indent)
        assert all(letter.isprintable() or letter == "\n" for letter in text)
        assert json.loads(text) == value
    assert "ü日本" in json_text(value)
