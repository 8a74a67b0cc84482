"""`tocsin events`: events of the record log, filtered, and the same records in the stream."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import psycopg
import pytest

from tests.cli.conftest import CommandLine
from tests.cli.records.fired_events import fire
from tocsin.core.settings import Settings


def test_events_and_tail_show_what_fired(tocsin: CommandLine, settings: Settings) -> None:
    tocsin("schedule", "add", "now", "--in", "1s", "--owner", "a b", "--payload", '{"n": 1}')
    tocsin("schedule", "add", "then", "--in", "1s", "--type", "reminder")
    fire(settings, 2)
    header, first, second = tocsin("events").lines
    assert header.split()[:3] == ["SEQ", "NOMINAL", "TIME"]
    assert [first.split()[0], second.split()[0]] == ["1", "2"]
    assert " ms " in first
    by_name = {row["schedule"]: row for row in tocsin("events", "--json").json}
    assert by_name["now"]["payload"] == {"n": 1}
    assert by_name["now"]["origin"] == "scheduled"
    assert [row["seq"] for row in tocsin("events", "--since-seq", "1", "--json").json] == [2]
    assert [row["seq"] for row in tocsin("events", "--limit", "1", "--json").json] == [2]
    assert [row["schedule"] for row in tocsin("events", "--type", "reminder", "--json").json] == ["then"]
    assert [row["schedule"] for row in tocsin("events", "--schedule", "now", "--json").json] == ["now"]
    assert tocsin("events", "--origin", "external").out == "no events match\n"
    assert tocsin("events", "--origin", "thrown", exit_code=1).err == (
        "tocsin: unknown origin 'thrown': use one of caused, derived, external, scheduled\n"
    )
    streamed = [
        json.loads(line) for line in tocsin("tail", "--from-seq", "1", "--count", "2", "--json-lines").lines
    ]
    assert [record["id"] for record in streamed] == [row["id"] for row in tocsin("events", "--json").json]
    shown = tocsin("tail", "--from-seq", "2", "--count", "1")
    assert shown.err == f"following '{settings.namespace}' from seq 2 (its last is 2)\n"
    assert shown.out.split()[0] == "2"
    assert tocsin("schedule", "show", "now", "--owner", "a b", "--json").json["status"] == "fired"


@pytest.fixture
def recorded(tocsin: CommandLine, settings: Settings) -> CommandLine:
    """Six events of two owners, a minute apart."""
    for number in range(3):
        for owner in ("a", "b"):
            tocsin("schedule", "add", f"s{number}", "--every", "1h", "--owner", owner)
            tocsin("schedule", "pause", f"s{number}", "--owner", owner)
    with psycopg.connect(settings.postgres, autocommit=True) as session:
        for table, seq in (("event", "seq"), ("log_commit", "last_seq")):
            session.execute(
                f"update tocsin.{table} set recorded_at = '2026-03-02T08:00Z'::timestamptz + {seq} * interval '1m'"
            )
        session.execute("update tocsin.event set rule = 'hot', severity = 4 where seq = 5")
    return tocsin


def _seqs(tocsin: CommandLine, *words: str) -> list[int]:
    return [row["seq"] for row in tocsin("events", *words, "--json").json]


@pytest.mark.parametrize(
    ("words", "seqs"),
    [
        ((), [1, 2, 3, 4, 5, 6]),
        (("--owner", "a"), [1, 3, 5]),
        (("--owner", ""), []),
        (("--rule", "hot"), [5]),
        (("--type", "schedule-paused", "--owner", "b"), [2, 4, 6]),
        (("--schedule", "s1"), [3, 4]),
        (("--since", "2026-03-02T08:04Z"), [4, 5, 6]),
        (("--since", "2026-03-02T08:03:30Z", "--owner", "b"), [4, 6]),
        (("--since", "2026-03-01T00:00Z"), [1, 2, 3, 4, 5, 6]),
        (("--since", "2026-03-03T00:00Z"), []),
        (("--since", "2026-03-02T08:02Z", "--limit", "2"), [5, 6]),
        (("--since-seq", "2", "--limit", "2"), [3, 4]),
        (("--since-seq", "2", "--owner", "b"), [4, 6]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_events_are_filtered(recorded: CommandLine, words: tuple[str, ...], seqs: list[int]) -> None:
    assert _seqs(recorded, *words) == seqs


def test_events_since_a_duration_ago(tocsin: CommandLine) -> None:
    tocsin("schedule", "add", "s", "--every", "1h")
    tocsin("schedule", "pause", "s")
    assert _seqs(tocsin, "--since", "1h") == [1]
    now = datetime.fromisoformat(tocsin("events", "--json").json[0]["recorded_at"])
    later = (now + timedelta(seconds=1)).isoformat()
    assert tocsin("events", "--since", later).out == "no events match\n"


def test_json_has_the_severity_by_name_and_the_alarm(recorded: CommandLine) -> None:
    (event,) = recorded("events", "--rule", "hot", "--json").json
    assert (event["severity"], event["level"], event["alarm_id"]) == ("high", 4, None)
    assert recorded("events", "--limit", "1", "--json").json[0]["severity"] is None


@pytest.mark.parametrize("command", ["events", "tail"])
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--type", "a b"), "--type 'a b' is not a type of records: use letters, digits, - and _, such as"),
        (("--owner", "x" * 129), "--owner has 129 characters: use at most 128, as names have"),
        (("--rule", "x" * 129), "--rule has 129 characters"),
        (
            ("--since", "soon"),
            "--since 'soon' is neither a duration nor an instant: write a duration such as",
        ),
        (("--since", "2026-03-02T08:00"), "--since '2026-03-02T08:00' is neither a duration nor an instant"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value)[:20],
)
def test_a_bad_filter_is_refused(
    recorded: CommandLine, settings: Settings, command: str, words: tuple[str, ...], error: str
) -> None:
    if command == "tail" and words[0] == "--since":
        fire(settings, 6)
    assert error in recorded(command, *words, exit_code=1).err


def test_filters_that_exclude_each_other_are_refused(tocsin: CommandLine) -> None:
    assert tocsin("events", "--since", "1h", "--since-seq", "3", exit_code=1).err == (
        "tocsin: --since and --since-seq exclude each other: keep one of them\n"
    )
    assert tocsin("tail", "--since", "1h", "--from-seq", "3", exit_code=1).err == (
        "tocsin: --since and --from-seq exclude each other: keep one of them\n"
    )
