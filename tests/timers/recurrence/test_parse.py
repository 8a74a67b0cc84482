"""Parsing returns a canonical recurrence, or refuses the arguments."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timers.recurrence import parse, parse_spec
from tocsin.core.errors import InvalidInput

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "arguments",
    [
        {"cron": "0 8 * * MON-FRI", "tz": "America/New_York"},
        {"cron": "@daily", "dst_gap": "skip", "dst_fold": "both"},
        {"cron": "H H(1-4) * * *", "hash_id": "nightly"},
        {"cron": "@every 10s", "anchor": NOW},
        {"every": "PT90S", "starts_at": NOW, "ends_at": NOW + timedelta(days=1)},
        {"at": "2026-03-08T02:30", "tz": "America/New_York"},
        {"at": "2026-03-10T14:00:00+02:00"},
        {"rrule": "FREQ=DAILY;COUNT=5", "dtstart": "2026-03-01T08:00", "tz": "Europe/London"},
        {"rrule": "FREQ=HOURLY;COUNT=5", "anchor": NOW, "tz": "Europe/London"},
        {"rrule": "FREQ=WEEKLY;UNTIL=20270101T000000Z", "anchor": NOW, "exdates": ["2026-03-08T12:00"]},
        {"rrule": "FREQ=WEEKLY", "anchor": NOW, "rdates": ["2026-03-09T12:00", "2026-03-08T12:00:00"]},
    ],
)
def test_the_specification_survives_json_and_gives_the_same_object(arguments: dict[str, Any]) -> None:
    recurrence = parse(**arguments)
    stored = json.loads(json.dumps(recurrence.spec))
    again = parse_spec(stored)
    assert again == recurrence
    assert again is recurrence or "at" in arguments, "only a single time is built each time"
    assert hash(again) == hash(recurrence)
    assert again.spec == recurrence.spec
    assert "hash_id" not in recurrence.spec


def test_equal_recurrences_share_one_object_however_they_were_written() -> None:
    assert parse(cron="@daily") is parse(cron="0 0 * * *")
    assert parse(cron="0 8 * * MON") is parse(cron="0 8 * * mon", anchor=NOW, hash_id="x")
    assert parse(every="90s", anchor=NOW) is parse(
        every="PT1M30S", anchor=NOW.astimezone(timezone(timedelta(hours=3)))
    )
    assert parse(cron="0 8 * * *") != parse(cron="0 8 * * *", tz="Europe/London")
    assert parse(cron="0 8 * * *") != parse(cron="0 8 * * *", ends_at=NOW)
    assert parse(every="90s", anchor=NOW) != parse(every="90s")


def test_changing_the_specification_handed_out_changes_nothing() -> None:
    recurrence = parse(cron="0 8 * * *")
    recurrence.spec["cron"] = "0 9 * * *"
    assert recurrence.spec["cron"] == "0 8 * * *"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({}, "none of them"),
        ({"cron": "0 8 * * *", "every": "10s"}, "cron and every"),
        ({"cron": "0 8 * * *", "tz": "Europe/Lodnon"}, "Europe/London"),
        ({"cron": "0 8 * * *", "dst_gap": "backward"}, "forward or skip"),
        ({"cron": "0 8 * * *", "dst_fold": "third"}, "first, second, both"),
        ({"cron": "0 8 * * *", "dtstart": "2026-01-01T00:00"}, "belong to an rrule"),
        ({"every": "10s", "exdates": ["2026-01-01T00:00"]}, "belong to an rrule"),
        ({"cron": "0 8 * * *", "starts_at": NOW, "ends_at": NOW - timedelta(days=1)}, "before starts_at"),
        ({"cron": "0 8 1 1 *", "starts_at": NOW, "ends_at": NOW + timedelta(days=1)}, "never fires"),
        ({"at": "2020-01-01T00:00Z", "starts_at": NOW}, "never fires"),
        ({"rrule": "FREQ=DAILY;UNTIL=20200101", "dtstart": "2026-01-01T00:00"}, "never fires"),
        (
            {"rrule": "FREQ=DAILY;COUNT=1", "dtstart": "2026-01-01T00:00", "exdates": ["2026-01-01T00:00"]},
            "never fires",
        ),
        ({"cron": "0 8 * * *", "starts_at": datetime(2026, 1, 1)}, "no timezone"),
        ({"every": "10s", "anchor": datetime(2026, 1, 1)}, "no timezone"),
        ({"every": 10}, "put it in quotes"),
        ({"cron": ["0 8 * * *"]}, "put it in quotes"),
        ({"cron": "0 8 * * *", "tz": 5}, "put it in quotes"),
        ({"rrule": "FREQ=DAILY", "exdates": "2026-01-01T00:00"}, "lists of wall times"),
        ({"rrule": "FREQ=DAILY", "exdates": [5]}, "put it in quotes"),
        ({"rrule": "FREQ=DAILY", "exdates": [[]]}, "put it in quotes"),
        ({"rrule": "FREQ=DAILY", "dtstart": 5}, "put it in quotes"),
        ({"rrule": "FREQ=DAILY;UNTIL=00010101T000000Z", "tz": "America/New_York"}, "leaves the calendar"),
        ({"rrule": "FREQ=DAILY;COUNT=3", "dtstart": "0001-01-01T00:00"}, "leaves the calendar"),
        ({"every": "1h", "starts_at": datetime.min.replace(tzinfo=UTC)}, "leaves the calendar"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(arguments: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidInput, match=hint):
        parse(**arguments)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"cron": "0 8 * * *", "colour": "red"},
        {"cron": "0 8 * * *", "every": "10s"},
        {"tz": "UTC"},
        {"every": "10s", "anchor": "yesterday"},
        {"every": "10s", "anchor": "2026-01-01T00:00"},
    ],
)
def test_a_foreign_specification_is_refused(spec: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        parse_spec(spec)


def test_a_short_specification_takes_the_defaults() -> None:
    assert parse_spec({"cron": "0 8 * * *"}) is parse(cron="0 8 * * *")


@settings(max_examples=300)
@given(st.text(max_size=60), st.sampled_from(["cron", "rrule", "every", "at", "tz"]))
def test_any_text_is_either_a_recurrence_or_refused(text: str, kind: str) -> None:
    arguments: dict[str, Any] = {"cron": "0 8 * * *", "tz": text} if kind == "tz" else {kind: text}
    try:
        recurrence = parse(**arguments)
    except InvalidInput:
        return  # any other exception fails the test
    assert parse_spec(recurrence.spec) is recurrence


@settings(max_examples=300)
@given(
    st.lists(
        st.text(alphabet="0123456789*/,-#?LWHRlwhr()monfrijan", min_size=1, max_size=8),
        min_size=5,
        max_size=5,
    )
)
def test_any_cron_like_text_is_either_a_recurrence_or_refused(fields: list[str]) -> None:
    try:
        recurrence = parse(cron=" ".join(fields))
    except InvalidInput:
        return  # any other exception fails the test
    assert recurrence.next_after(NOW) is not None
