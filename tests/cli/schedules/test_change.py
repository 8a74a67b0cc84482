"""Changes of schedules from the command line are events of the record log."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.cli.conftest import CommandLine
from tocsin.cli.schedules import add
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

    def look(values: dict[str, Any]) -> Any:
        with psycopg.connect(settings.postgres) as watch:
            query = "select state from pg_stat_activity where application_name = 'tocsin command line'"
            seen.extend(state for (state,) in watch.execute(query).fetchall())
        return check(values)

    check = add._document
    monkeypatch.setattr(add, "_document", look)
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
