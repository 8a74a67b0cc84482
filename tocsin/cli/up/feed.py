"""Feeds the screen of `tocsin up`: records of the stream, coming fires and open alarms.

Guarantee: each record after the head at the start reaches the screen once, in order, even if a
server restarts meanwhile, because the position in the stream is kept here. A message that is not a
record is shown as such. The feed only reads.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from clock.time_source import DatabaseTime, steady_s
from rules.actions.history import find_run, step_names
from rules.alarms.notifications import read_failing
from rules.alarms.queries import list_alarms
from schemas.values.severities import level_name
from timers.coming_fires import coming_fires, tz_of
from timers.schedules import find_schedule, list_schedules
from timers.working_set import database_now
from tocsin.cli.output import title
from tocsin.cli.records.foreign_messages import NOT_A_RECORD_ERRORS
from tocsin.cli.up.lines import Record, foreign_line, line_of
from tocsin.cli.up.screen import Screen
from tocsin.cli.up.view import MAX_SHOWN_FIRES, Restarts, ShownAlarm, ViewState, undelivered_text
from tocsin.client._follow import follow
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection, fetch_one, open_session
from tocsin.core.errors import TocsinError
from tocsin.core.service import Service
from tocsin.core.settings import Settings

_FRAME_S = 0.25
_FRAMES_PER_QUERY = 4
_MAX_COUNTED = 1000


class Feed:
    def __init__(self, settings: Settings, screen: Screen, state: ViewState, after: int) -> None:
        self._settings = settings
        self._screen = screen
        self._state = state
        self._after = after
        self._zones: dict[tuple[str, str], str] = {}
        self._steps: dict[str, Sequence[str]] = {}
        self.closed = asyncio.Event()

    async def follow_stream(self) -> None:
        async with (
            open_session(self._settings, "up") as connection,
            open_bus(self._settings, "up") as bus,
        ):
            async for message in follow(bus, self._settings.stream, self._after):
                await self._show_message(connection, message.metadata.sequence.stream, message.data)

    async def _show_message(self, connection: Connection, seq: int, data: bytes) -> None:
        try:
            record = Record(seq, json.loads(data))
            await self._cache_timezone(connection, record)
            await self._cache_step_names(connection, record)
            line = line_of(record, lambda owner, name: self._zones.get((owner, name), "UTC"), self._step_name)
        except NOT_A_RECORD_ERRORS:
            line = foreign_line(seq, data)
        if line is not None:
            self._screen_call(partial(self._screen.show, line))
        self._after = seq

    async def refresh_state(self, services: Sequence[Service]) -> None:
        time = DatabaseTime()
        async with open_session(self._settings, "up") as connection:
            frame = 0
            while True:
                if frame % _FRAMES_PER_QUERY == 0:
                    await self._read_state(connection, time)
                frame += 1
                self._state.now = time.now()
                self._state.restarts = {
                    service.name: Restarts(service.restarts, service.last_error, service.problem is None)
                    for service in services
                    if service.restarts
                }
                self._screen_call(partial(self._screen.refresh, self._state))
                await asyncio.sleep(_FRAME_S)

    async def _read_state(self, connection: Connection, time: DatabaseTime) -> None:
        asked_s = steady_s()
        now = await database_now(connection)
        time.observe(now, asked_s, steady_s())
        rows = await list_schedules(connection, status="active", limit=MAX_SHOWN_FIRES)
        for row in rows:
            self._zones[row["owner"], row["name"]] = tz_of(row)
        self._state.coming_fires = coming_fires(rows, len(rows))
        alarms = await list_alarms(connection, states=("open",), limit=_MAX_COUNTED)
        self._state.alarms = [_open_alarm(row, now) for row in alarms]
        dead = await fetch_one(connection, "tocsin.doctor/count_dead_runs")
        failing = await read_failing(connection)
        self._state.undelivered = undelivered_text(failing, 0 if dead is None else dead[0])
        self._state.paused_schedules = len(
            await list_schedules(connection, status="paused", limit=_MAX_COUNTED)
        )

    async def _cache_timezone(self, connection: Connection, record: Record) -> None:
        key = record.schedule_key
        _, schedule = key
        if schedule and key not in self._zones:
            row = await find_schedule(connection, *key)
            self._zones[key] = "UTC" if row is None else tz_of(row)

    async def _cache_step_names(self, connection: Connection, record: Record) -> None:
        """Read the step names of each action once per rule set.

        The step of an action with only one step is not named in the line.
        """
        if record.body["type"] == "rules-applied":
            self._steps.clear()
        action = str(record.body.get("action", ""))
        if not record.is_event and action not in self._steps:
            try:
                row = await find_run(connection, record.body["actionid"])
            except TocsinError:  # retention has removed the run
                return
            names = step_names(row["document"])
            self._steps[action] = names if len(names) > 1 else ()

    def _step_name(self, action: str, step: int) -> str:
        names = self._steps.get(action, ())
        return names[step] if step < len(names) else ""

    def _screen_call(self, call: Callable[[], None]) -> None:
        """Call the screen. If its output is closed (`| head`), set `closed`."""
        try:
            call()
        except BrokenPipeError:
            self.closed.set()


def _open_alarm(row: dict[str, Any], now: datetime) -> ShownAlarm:
    snoozed = row["snoozed_until"] is not None and row["snoozed_until"] > now
    return ShownAlarm(
        level_name(row["severity"]),
        title(row["owner"], row["event_rule"]),
        row["since"],
        str(row["payload"].get("message", "")),
        row["acknowledged_at"] is not None or snoozed,
    )
