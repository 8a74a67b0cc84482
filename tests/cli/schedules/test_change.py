"""Changes of schedules from the command line are events of the record log."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from rules.apply import one_schedule
from tests.cli.conftest import CommandLine
from tocsin.core.settings import Settings


def _add(tocsin: CommandLine, name: str, *words: str) -> None:
    tocsin("schedule", "add", name, "--every", "1h", *words)


def test_pause_resume_and_cancel_are_events(tocsin: CommandLine) -> None:
    _add(tocsin, "one", "--owner", "plant")
    for verb in ("pause", "pause", "resume", "cancel"):
        tocsin("schedule", verb, "one", "--owner", "plant", "--by", "bob")
    found = tocsin("events", "--json").json
    assert [event["type"] for event in found] == ["schedule-paused", "schedule-resumed", "schedule-cancelled"]
    assert tocsin("events", "--origin", "caused", "--schedule", "one", "--json").json == found


def test_a_schedule_is_validated_before_the_transaction(
    tocsin: CommandLine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres ends a session that idles inside a transaction, and validation can be slow."""
    seen: list[str] = []

    def look(values: dict[str, Any], edit: Any) -> Any:
        with psycopg.connect(settings.postgres) as watch:
            query = "select state from pg_stat_activity where application_name = 'tocsin command line'"
            seen.extend(state for (state,) in watch.execute(query).fetchall())
        return check(values, edit)

    check = one_schedule._document
    monkeypatch.setattr(one_schedule, "_document", look)
    _add(tocsin, "one")
    assert seen == ["idle"]


def test_cancelling_several_schedules_is_one_event_each(tocsin: CommandLine) -> None:
    for name in ("a", "b"):
        _add(tocsin, name, "--owner", "x")
    tocsin("schedule", "cancel", "--all", "--owner", "x")
    assert [event["type"] for event in tocsin("events", "--json").json] == ["schedule-cancelled"] * 2


def test_a_refused_change_is_no_event(tocsin: CommandLine) -> None:
    _add(tocsin, "one")
    refused = tocsin("schedule", "pause", "one", "--if-generation", "7", exit_code=1)
    assert "is at generation 1, not 7" in refused.err
    assert tocsin("events").out == "no events\n"


def test_run_is_an_event_with_the_payload_and_leaves_the_next_fire(tocsin: CommandLine) -> None:
    _add(tocsin, "one", "--owner", "plant", "--payload", '{"k": 1}')
    before = tocsin("schedule", "show", "one", "--owner", "plant", "--json").json
    ran = tocsin("schedule", "run", "one", "--owner", "plant", "--created-by", "bob")
    assert ran.out == "ran schedule plant/one, seq 2\n"
    again = tocsin("schedule", "run", "one", "--owner", "plant", "--json").json
    assert again == {"schedule": "one", "owner": "plant", "seq": 4}
    assert tocsin("schedule", "show", "one", "--owner", "plant", "--json").json == before
    (event, _) = tocsin("events", "--type", "schedule-triggered", "--json").json
    assert '"k": 1' in tocsin("events", "--json").out
    assert event["schedule"] == "one"
    changes = tocsin("audit", "one", "--json").json
    assert tuple(changes[1][key] for key in ("who", "via", "verb")) == ("bob", "cli", "run-now")


def test_running_an_unknown_schedule_is_refused(tocsin: CommandLine) -> None:
    assert tocsin("schedule", "run", "nope", "--owner", "x", exit_code=1).err == (
        "tocsin: there is no schedule 'nope' of owner 'x': `tocsin schedules` lists them\n"
    )


def test_all_schedules_are_cancelled_after_a_question(tocsin: CommandLine) -> None:
    for owner in ("a", "b"):
        _add(tocsin, "one", "--owner", owner)
    refused = tocsin("schedule", "cancel", "--all", exit_code=1)
    assert "cancel all schedules, of all owners and of the rule files? [y/N]" in refused.err
    assert len(tocsin("schedules", "--status", "active", "--json").json) == 2
    assert tocsin("schedule", "cancel", "--all", "--yes").lines[-1] == "2 cancelled"
    assert tocsin("schedules", "--status", "active", "--json").json == []


def test_a_schedule_is_cancelled_by_its_id(tocsin: CommandLine) -> None:
    _add(tocsin, "one", "--owner", "a")
    id = tocsin("schedule", "show", "one", "--owner", "a", "--json").json["id"]
    assert tocsin("schedule", "cancel", "--id", id, "--json").json["status"] == "cancelled"
    unknown = "00000000-0000-0000-0000-000000000000"
    assert (
        "there is no schedule with the id" in tocsin("schedule", "cancel", "--id", unknown, exit_code=1).err
    )


def test_a_schedule_has_a_title_a_description_and_a_runbook(tocsin: CommandLine) -> None:
    words = ("--title", "Nightly", "--description", "Backs up", "--runbook-url", "https://wiki.example.com/n")
    _add(tocsin, "one", *words)
    shown = tocsin("schedule", "show", "one")
    assert "  title        Nightly" in shown.lines
    assert "  runbook url  https://wiki.example.com/n" in shown.lines
    stored = tocsin("schedule", "show", "one", "--json").json
    assert (stored["title"], stored["description"]) == ("Nightly", "Backs up")
    assert (
        "--runbook-url"
        in tocsin("schedule", "add", "x", "--every", "1h", "--runbook-url", "wiki", exit_code=1).err
    )


def test_a_retry_needs_an_action(tocsin: CommandLine) -> None:
    words = ("schedule", "add", "x", "--every", "1h", "--retry", '{"attempts": 3}')
    assert "has no effect without an action" in tocsin(*words, exit_code=1).err


@pytest.mark.parametrize("at", ["4102444800", "2100-01-01T00:00:00Z", "2100-01-01T01:00:00+01:00"])
def test_a_time_is_a_unix_timestamp_or_an_instant(tocsin: CommandLine, at: str) -> None:
    added = tocsin("schedule", "add", "one", "--at", at, "--json").json
    assert added["next_at"] == "2100-01-01T00:00:00Z"
    bounded = tocsin("schedule", "add", "two", "--every", "1h", "--ends-at", at, "--json").json
    assert bounded["recurrence"]["ends_at"] == "2100-01-01T00:00:00Z"


def test_upcoming_fires_are_filtered_by_type(tocsin: CommandLine) -> None:
    _add(tocsin, "one", "--type", "a")
    _add(tocsin, "two", "--type", "b")
    fires = tocsin("upcoming", "--type", "b", "--count", "1", "--json").json["fires"]
    assert [fire["schedule"] for fire in fires] == ["two"]


def test_parse_time_reads_a_unix_timestamp_of_the_past(tocsin: CommandLine) -> None:
    assert tocsin("parse-time", "1736882445", "--json").json["utc"] == "2025-01-14T19:20:45Z"
    wrong = tocsin("parse-time", "1736882445000", exit_code=1).err
    assert "it seems to be in milliseconds: divide it by 1000" in wrong
