"""Schedules from the command line: added, listed, paused, resumed, cancelled, audited."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import CommandLine
from tocsin.core.settings import Settings

_DAILY = ("--cron", "30 2 * * *", "--tz", "America/New_York")


def _add(tocsin: CommandLine, name: str, *words: str, exit_code: int = 0) -> str:
    return tocsin("schedule", "add", name, *words, exit_code=exit_code).out


def test_an_added_schedule_is_echoed_with_its_next_fire(tocsin: CommandLine) -> None:
    shown = _add(
        tocsin, "moving", "--at", "2037-03-08T02:30", "--tz", "America/New_York", "--created-by", "ann"
    )
    assert shown.splitlines()[0] == "added schedule moving"
    assert "  next fire    Sun 2037-03-08 03:00:00 EDT = 2037-03-08 07:00:00Z\n" in shown
    assert "  created      by ann via cli at " in shown


def test_exclusions_and_the_start_of_an_rrule_are_shown(tocsin: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        "schedule:\n  name: weekly\n  rrule: FREQ=WEEKLY;BYDAY=MO\n  dtstart: 2026-11-16T08:00:00\n"
        "  exdates: [2026-11-23T08:00:00]\n"
    )
    tocsin("apply", str(path))
    shown = tocsin("schedule", "show", "weekly").lines
    assert "  dtstart      2026-11-16T08:00:00" in shown
    assert '  exdates      ["2026-11-23T08:00:00"]' in shown


def test_adding_the_same_again_returns_the_same_schedule_as_deduped(tocsin: CommandLine) -> None:
    words = (
        "schedule",
        "add",
        "invoice",
        "--every",
        "1h",
        "--owner",
        "billing",
        "--payload",
        '{"n": 42}',
        "--json",
    )
    first, again = tocsin(*words).json, tocsin(*words).json
    assert (first["deduped"], again["deduped"]) == (False, True)
    assert {**first, "deduped": True, "outcome": "unchanged"} == again
    assert again["payload"] == {"n": 42}


@pytest.mark.parametrize("when", [("--in", "30m"), ("--at", "tomorrow at 9am")], ids=str)
def test_a_relative_time_added_again_is_the_same_content(tocsin: CommandLine, when: tuple[str, str]) -> None:
    first = tocsin("schedule", "add", "later", *when, "--json").json
    again = tocsin("schedule", "add", "later", *when, "--json").json
    assert (again["deduped"], again["next_at"]) == (True, first["next_at"])
    assert "at is " in tocsin("schedule", "add", "later", "--in", "31m", exit_code=1).err


def test_other_content_under_the_same_key_is_refused_with_the_difference(tocsin: CommandLine) -> None:
    _add(tocsin, "invoice", "--every", "1h", "--payload", '{"n": 1}')
    refused = tocsin("schedule", "add", "invoice", "--every", "2h", "--payload", '{"n": 2}', exit_code=1)
    assert refused.err.startswith("tocsin: schedule 'invoice' exists with other content (")
    assert "every is 1h, not 2h" in refused.err
    assert 'payload is {"n": 1}, not {"n": 2}' in refused.err
    assert refused.err.endswith(": choose another name, or edit it with --replace or --if-generation 1\n")
    kept = tocsin("schedule", "show", "invoice", "--json").json
    assert (kept["generation"], kept["payload"]) == (1, {"n": 1})


def test_replace_and_the_right_generation_edit_it(tocsin: CommandLine) -> None:
    _add(tocsin, "invoice", "--every", "1h")
    assert _add(tocsin, "invoice", "--every", "2h", "--replace").startswith("changed schedule invoice\n")
    _add(tocsin, "invoice", "--every", "3h", "--if-generation", "2")
    stale = tocsin("schedule", "add", "invoice", "--every", "4h", "--if-generation", "2", exit_code=1)
    assert stale.err.startswith("tocsin: schedule 'invoice' is at generation 3, not 2: ")
    assert tocsin("schedule", "show", "invoice", "--json").json["recurrence"]["every"] == "3h"


def test_an_edit_leaves_a_paused_schedule_paused(tocsin: CommandLine) -> None:
    _add(tocsin, "invoice", "--every", "1h")
    tocsin("schedule", "pause", "invoice")
    assert "deduped" in _add(tocsin, "invoice", "--every", "1h").splitlines()[0]
    _add(tocsin, "invoice", "--every", "2h", "--replace")
    assert tocsin("schedule", "show", "invoice", "--json").json["status"] == "paused"


def test_a_cancelled_schedule_is_made_active_again_only_on_request(tocsin: CommandLine) -> None:
    _add(tocsin, "invoice", "--every", "1h")
    tocsin("schedule", "cancel", "invoice")
    refused = tocsin("schedule", "add", "invoice", "--every", "1h", exit_code=1)
    assert refused.err.startswith("tocsin: schedule 'invoice' is cancelled: ")
    _add(tocsin, "invoice", "--every", "1h", "--replace")
    assert tocsin("schedule", "show", "invoice", "--json").json["status"] == "active"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a/b", "--every", "5s"), "name is 'a/b': use letters, digits, '_' and '-', at most 128 of them"),
        (("x",), "the schedule needs one of cron, rrule, every or at"),
        (("x", "--every", "5"), "'5' is not a duration: a bare number has no unit, write 5s or 5m"),
        (
            ("x", "--at", "2037-01-01T00:00Z", "--in", "5m"),
            "--at and --in exclude each other: keep one of them",
        ),
        (
            ("x", "--every", "5s", "--payload", "[1]"),
            "--payload '[1]' is not a JSON object: write an object, such as '{\"order\": 17}'",
        ),
        (
            ("x", "--every", "5s", "--action", "nope"),
            "no action 'nope' is applied: apply an action first, with `tocsin apply`",
        ),
        (
            ("x", "--every", "5s", "--catch-up", "some"),
            "--catch-up must be 'latest', 'all' or 'none', not 'some'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_wrong_value_is_named_by_its_option(
    tocsin: CommandLine, words: tuple[str, ...], message: str
) -> None:
    assert tocsin("schedule", "add", *words, exit_code=1).err == f"tocsin: {message}\n"


def test_upcoming_shows_every_schedule_in_order_and_pauses_and_dst_notes(tocsin: CommandLine) -> None:
    _add(tocsin, "frequent", "--every", "10m", "--owner", "plant")
    _add(tocsin, "gap", "--at", "2037-03-08T02:30", "--tz", "America/New_York")
    _add(tocsin, "held", *_DAILY)
    tocsin("schedule", "pause", "held")
    header, *rows = tocsin("upcoming", "--count", "4").lines
    assert header.split() == ["SCHEDULE", "LOCAL", "TIME", "UTC", "COUNTDOWN", "NOTE"]
    assert [row.split()[0] for row in rows] == ["plant/frequent"] * 3 + ["gap", "held"]
    assert "in 9m" in rows[0]
    assert "02:30" in rows[3].partition("2037-03-08 07:00:00Z")[2]
    assert rows[4].split()[:2] == ["held", "paused"]
    found = tocsin("upcoming", "--count", "2", "--json").json
    assert [(fire["owner"], fire["schedule"]) for fire in found["fires"]] == [
        ("plant", "frequent"),
        ("", "gap"),
    ]
    assert found["paused"] == [{"schedule": "held", "owner": ""}]


def test_upcoming_is_filtered_by_owner_and_schedule(tocsin: CommandLine) -> None:
    _add(tocsin, "beat", "--every", "10m", "--owner", "a")
    _add(tocsin, "beat", "--every", "20m", "--owner", "b")
    _add(tocsin, "other", "--every", "1m", "--owner", "b")
    tocsin("schedule", "pause", "beat", "--owner", "b")

    def shown(*words: str) -> tuple[set[tuple[str, str]], int]:
        found = tocsin("upcoming", "--count", "3", "--json", *words).json
        return {(fire["owner"], fire["schedule"]) for fire in found["fires"]}, len(found["paused"])

    assert shown("--owner", "a") == ({("a", "beat")}, 0)
    assert shown("--schedule", "beat") == ({("a", "beat")}, 1)
    assert shown("--owner", "b") == ({("b", "other")}, 1)
    assert shown("--owner", "b", "--schedule", "other") == ({("b", "other")}, 0)
    assert tocsin("upcoming", "--schedule", "nope").out == (
        "no schedule that matches fires again: `tocsin schedules` lists all\n"
    )


def test_commands_on_an_empty_instance(tocsin: CommandLine) -> None:
    assert tocsin("upcoming").out.startswith("no schedules: add one with ")
    assert tocsin("schedules").out.startswith("no schedules: add one with ")
    assert tocsin("timers").out == "no timers are pending\n"
    assert tocsin("timers", "--parked").out == "no timers match\n"
    assert tocsin("events").out == "no events\n"
    assert tocsin("audit").out == "no changes are recorded\n"


def test_schedules_are_listed_and_filtered(tocsin: CommandLine) -> None:
    _add(tocsin, "one", "--every", "1h", "--owner", "a")
    _add(tocsin, "two", "--every", "2h", "--type", "reminder")
    header, first, second = tocsin("schedules").lines
    assert header.split()[:3] == ["SCHEDULE", "STATUS", "RECURRENCE"]
    assert first.startswith("a/one")
    assert "every 1h in UTC" in first
    assert second.startswith("two")
    assert [row["name"] for row in tocsin("schedules", "--owner", "a", "--json").json] == ["one"]
    assert [row["name"] for row in tocsin("schedules", "--type", "reminder", "--json").json] == ["two"]
    assert tocsin("schedules", "--owner", "z").out == "no schedules match\n"
    assert tocsin("schedules", "--status", "asleep", exit_code=1).err.startswith(
        "tocsin: unknown status 'asleep': use one of active, paused"
    )


def test_timers_show_the_tick_of_each_schedule(tocsin: CommandLine) -> None:
    _add(tocsin, "one", "--every", "1h")
    _, row = tocsin("timers", "--kind", "schedule-tick").lines
    assert row.split()[:2] == ["schedule-tick", "one"]
    assert "in 59m" in row
    assert row.endswith("armed")
    assert tocsin("timers", "--json").json[0]["schedule"] == "one"
    assert "unknown timer kind 'tick'" in tocsin("timers", "--kind", "tick", exit_code=1).err


def test_a_failed_timer_is_retried_by_name_and_audited(tocsin: CommandLine, settings: Settings) -> None:
    _add(tocsin, "one", "--every", "1h")
    assert "has not failed" in tocsin("timers", "retry", "schedule-tick", "one", exit_code=1).err
    with psycopg.connect(settings.postgres) as db:
        db.execute(
            "update tocsin.timer set attempts = 5, last_error = 'no luck', parked_at = tocsin.instant()"
        )
    assert tocsin("timers", "--parked").lines[1].endswith("parked: no luck")
    answer = tocsin("timers", "retry", "schedule-tick", "one", "--by", "bob")
    assert answer.out == "schedule-tick one is due again after 5 failures; the last was: no luck\n"
    assert tocsin("timers", "--parked").out == "no timers match\n"
    last = tocsin("audit", "one", "--json").json[-1]
    assert (last["who"], last["via"], last["verb"], last["kind"]) == ("bob", "cli", "retry", "timer")
    with psycopg.connect(settings.postgres) as db:
        db.execute("update tocsin.timer set attempts = 1, last_error = 'again'")
    assert tocsin("timers", "retry", "schedule-tick", "one", "--json").json["last_error"] == "again"
    assert "there is no watchdog 'one'" in tocsin("timers", "retry", "watchdog", "one", "k", exit_code=1).err


def test_pause_resume_and_cancel_change_the_status_and_are_audited(tocsin: CommandLine) -> None:
    _add(tocsin, "one", "--every", "1h", "--created-by", "ann")
    for verb, status in (("pause", "paused"), ("resume", "active"), ("cancel", "cancelled")):
        answer = tocsin("schedule", verb, "one", "--by", "bob", "--json").json
        assert (answer["outcome"], answer["status"]) == ("changed", status)
    assert tocsin("schedule", "cancel", "one", "--json").json["outcome"] == "unchanged"
    refused = tocsin("schedule", "resume", "one", exit_code=1)
    assert refused.err == "tocsin: schedule 'one' is cancelled and cannot be resumed\n"
    changes = tocsin("audit", "one", "--json").json
    assert [(change["who"], change["via"], change["verb"]) for change in changes] == [
        ("ann", "cli", "add"),
        *(("bob", "cli", verb) for verb in ("pause", "resume", "cancel")),
    ]
    assert "status active -> paused" in tocsin("audit", "one").lines[2]
    assert tocsin("audit", "other").out == "no changes of 'other' are recorded\n"


def test_cancel_takes_all_of_an_owner_or_all_of_a_type_and_nothing_else(tocsin: CommandLine) -> None:
    for name, owner, type_ in (("a", "x", "t"), ("b", "x", "u"), ("c", "y", "t"), ("d", "y", "u")):
        _add(tocsin, name, "--every", "1h", "--owner", owner, "--type", type_)
    tocsin("schedule", "pause", "b", "--owner", "x")
    assert tocsin("schedule", "cancel", "--all", "--owner", "x").lines[-1] == "2 cancelled"
    assert tocsin("schedule", "cancel", "--type", "t", "--json").json == {
        "cancelled": [{"owner": "y", "name": "c"}],
        "count": 1,
    }
    assert [row["name"] for row in tocsin("schedules", "--status", "active", "--json").json] == ["d"]


@pytest.mark.parametrize("words", [(), ("--owner", "x")], ids=str)
def test_cancel_without_a_target_cancels_nothing(tocsin: CommandLine, words: tuple[str, ...]) -> None:
    _add(tocsin, "a", "--every", "1h", "--owner", "x")
    assert tocsin("schedule", "cancel", *words, exit_code=1).err == (
        "tocsin: nothing to cancel: give a name, --id, --all or --type\n"
    )
    assert tocsin("schedule", "show", "a", "--owner", "x", "--json").json["status"] == "active"


def test_an_unknown_schedule_is_one_line(tocsin: CommandLine) -> None:
    for verb in ("show", "pause", "resume", "cancel"):
        assert tocsin("schedule", verb, "nope", "--owner", "x", exit_code=1).err == (
            "tocsin: there is no schedule 'nope' of owner 'x': `tocsin schedules` lists them\n"
        )


def test_an_owner_with_control_characters_cannot_move_the_cursor(tocsin: CommandLine) -> None:
    _add(tocsin, "one", "--every", "1h", "--owner", "a\x1b[2Jb\n")
    for words in (("schedules",), ("upcoming",), ("audit",)):
        shown = tocsin(*words).out
        assert "\\x1b[2Jb\\n/one" in shown
        assert "\x1b" not in shown


def test_an_unmigrated_database_is_refused_with_the_remedy(tocsin: CommandLine, settings: Settings) -> None:
    tocsin.environment["TOCSIN_POSTGRES"] = settings.postgres.replace(
        f"dbname={settings.namespace}", "dbname=template1"
    )
    assert tocsin("schedules", exit_code=1).err.endswith(": run `tocsin migrate`\n")
