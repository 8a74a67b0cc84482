"""`tocsin explain`: as text and as JSON."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from clock.term import begin_term
from tests.cdc.published_records import with_long_timeouts
from tests.cli.conftest import CommandLine
from tests.clock.clock_setup import T0, at, put
from tocsin.core.db import connect
from tocsin.core.settings import Settings


def _fire_a_beat(settings: Settings) -> None:
    async def work() -> None:
        connection = await connect(with_long_timeouts(settings), "test")
        try:
            await connection.execute("select set_config('tocsin.now', %s, false)", (T0.isoformat(),))
            await put(connection, owner="plant")
            recorded_at = at(10) + timedelta(milliseconds=2)
            await connection.execute("select set_config('tocsin.now', %s, false)", (recorded_at.isoformat(),))
            await (await begin_term(connection, "test")).run_once(at(10))
        finally:
            await connection.close()

    asyncio.run(work())


def test_a_fire_is_explained_with_its_records(tocsin: CommandLine, settings: Settings) -> None:
    _fire_a_beat(settings)
    words = ("explain", "beat", "--owner", "plant", "--at", "2026-03-02T08:00:10Z")
    first, *facts = tocsin(*words).lines
    sentence = "fired at 2026-03-02 08:00:10 UTC, seq 1, generation 1, 2 ms late"
    assert first == f"plant/beat {sentence}"
    assert [fact.split()[0] for fact in facts][:4] == ["schedule", "owner", "asked", "timer"]
    assert "  seq            1" in facts
    found = tocsin(*words, "--json").json
    assert (found["outcome"], found["sentence"], found["seq"]) == ("fired", sentence, 1)
    assert found["nominal_at"].startswith("2026-03-02T08:00:10")
    shifted = tocsin(*words[:-1], f"{T0 + timedelta(seconds=10):%Y-%m-%dT10:00:10}+02:00", "--json").json
    assert shifted == found


def test_without_a_time_it_is_about_the_latest_occurrence_or_the_pending_one(tocsin: CommandLine) -> None:
    tocsin("schedule", "add", "once", "--at", "2037-03-10T14:00Z")
    shown = tocsin("explain", "once")
    assert shown.out.startswith("once not due yet: fires at 2037-03-10 14:00:00 UTC, in ")
    tocsin("schedule", "pause", "once", "--by", "bob")
    assert "bob via cli at " in tocsin("explain", "once").lines[0]


def test_a_wrong_question_is_one_line(tocsin: CommandLine) -> None:
    assert tocsin("explain", "nope", exit_code=1).err == (
        "tocsin: there is no schedule 'nope': `tocsin schedules` lists them\n"
    )
    assert tocsin("explain", "nope", "--at", "2026-03-02T08:00", exit_code=1).err == (
        "tocsin: --at '2026-03-02T08:00' is not an instant: write it as 2026-03-07T00:00Z, "
        "as a unix timestamp, or as 'tomorrow at 9am'\n"
    )


def test_rules_and_channels_that_are_not_active_name_the_calendar(
    tocsin: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "r.yaml").write_text(
        """calendar: {name: us-holidays, dates: ["2026-12-25"]}
---
event_rule: {name: few-orders, datapoint: orders, below: 10, active_in: {except: [us-holidays]}, notify: [few-orders]}
---
channel:
  name: few-orders
  slack: {url: {secret: slack-url}}
  active_in: {hours: ["08:00-18:00"], tz: America/New_York}
"""
    )
    tocsin("apply", str(tmp_path / "r.yaml"))
    words = ("explain", "few-orders", "--at", "2026-12-25T12:00:00Z")
    assert tocsin(*words).lines == [
        "event_rule few-orders does not fire at 2026-12-25T12:00:00Z: excluded by calendar us-holidays, "
        "until 2026-12-26T00:00:00Z",
        "channel few-orders is not notified at 2026-12-25T12:00:00Z: outside of 08:00-18:00 America/New_York, "
        "until 2026-12-25T13:00:00Z",
    ]
    rule, channel = tocsin(*words, "--json").json
    assert (rule["active"], rule["reason"]) == (False, "excluded by calendar us-holidays")
    assert channel["until"] == "2026-12-25T13:00:00Z"
    assert "fires at" in tocsin("explain", "few-orders", "--at", "2026-12-24T12:00:00Z").out
