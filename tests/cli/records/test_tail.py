"""`tocsin tail`: the record stream, filtered, with messages that are not records."""

from __future__ import annotations

import asyncio
import json
from typing import Self

from tests.cli.conftest import CommandLine
from tests.cli.records.fired_events import fire
from tests.rules.lanes.lane_setup import jetstream
from tests.wait import eventually
from tocsin.cli.up.feed import Feed
from tocsin.cli.up.lines import Line
from tocsin.cli.up.view import ViewState
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


def test_tail_is_filtered_by_owner_type_and_time(tocsin: CommandLine, settings: Settings) -> None:
    for owner in ("a", "b", "a"):
        tocsin("schedule", "add", "beat", "--every", "1h", "--owner", owner)
        tocsin("schedule", "run", "beat", "--owner", owner)
    tocsin("schedule", "pause", "beat", "--owner", "a")
    fire(settings, 7)

    def shown(*words: str) -> list[tuple[str, str]]:
        lines = tocsin("tail", *words, "--json-lines").lines
        return [(record["owner"], record["type"]) for record in map(json.loads, lines)]

    triggered = ("a", "schedule-triggered")
    assert shown("--from-seq", "1", "--owner", "a", "--count", "2") == [triggered, ("a", "schedule-fired")]
    assert shown("--since", "1h", "--owner", "b", "--count", "1") == [("b", "schedule-triggered")]
    words = ("--from-seq", "1", "--type", "schedule-paused", "--count", "1")
    assert shown(*words) == [("a", "schedule-paused")]
    assert tocsin("tail", *words).err == f"following '{settings.namespace}' from seq 1 (its last is 7)\n"


class _Shown:
    """A screen that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        return None

    def say(self, text: str) -> None:
        raise NotImplementedError

    def show(self, line: Line) -> None:
        self.lines.append(line.plain())

    def refresh(self, state: ViewState) -> None:
        raise NotImplementedError


def test_a_message_that_is_no_record_is_marked_and_passed(tocsin: CommandLine, settings: Settings) -> None:
    """A client with the permission to publish left it behind; `tocsin cdc adopt` keeps it."""
    tocsin("schedule", "add", "first", "--in", "1s")
    fire(settings, 1)
    screen = _Shown()

    async def leave_behind_and_follow() -> None:
        async with jetstream(settings) as js:
            subject = f"{settings.subjects}.staleness.plant.flow"
            for body in (b'{"value": "stale"}', b"\xff", b'{"type": "late", "data": {}}'):
                await js.publish(subject, body)
        feed = Feed(settings, screen, ViewState("1", "", "", "", ""), after=0)
        async with running(Service("follow", feed.follow_stream)):

            async def all_shown() -> bool:
                return len(screen.lines) >= 4

            await eventually(all_shown, "everything is shown", 10.0)

    asyncio.run(leave_behind_and_follow())
    assert screen.lines[1:] == [
        'event   not a record of tocsin: {"value": "stale"}  seq 2',
        "event   not a record of tocsin: \ufffd  seq 3",
        "event   late  seq 4",
    ]
    assert tocsin("tail", "--from-seq", "2", "--count", "3").lines == [
        '2  not a record of tocsin: {"value": "stale"}',
        "3  not a record of tocsin: \ufffd",
        "4  action  late  {}",
    ]
