"""An instance in virtual time, without its services: the clock fires, the record lane reads, workers
perform.

Everything happens on one session whose `tocsin.now` the test moves, so hours take milliseconds and the
order is always the same. The code under test is the product's own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID, uuid4

from nats.aio.client import Client
from psycopg.types.json import Jsonb

from cdc.log_reader import LogReader
from clock.term import Term, begin_term
from rules.actions.performer import perform_step
from rules.actions.queue import QueueBackstop
from rules.alarms.operator import snooze
from rules.alarms.queries import find_alarm
from rules.dispatch.alarm_transitions import AlarmTransitions
from rules.dispatch.dispatcher import Dispatcher
from rules.dispatch.event_waits import EventWaits
from rules.dispatch.suppression_ends import SuppressionEnds
from rules.lanes.lane import LaneMessage
from rules.lanes.record_lane import RecordLane
from rules.suppression.operator import add_silence
from rules.suppression.silence_store import NewSilence
from rules.suppression.window_lane import SilenceEnds
from schemas.values.duration import format_duration, parse_duration
from schemas.wire.step import StepRow
from tests.rules.actions.performed_steps import step_context
from tests.rules.apply.apply_setup import put, rule
from tests.sql import all_rows
from tests.virtual_clock import VirtualClock
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


class Instance:
    def __init__(self, settings: Settings, connection: Connection, bus: Client, term: Term) -> None:
        self.connection = connection
        self.clock = VirtualClock(START)
        self.context = step_context(settings, connection, bus)
        self._term = term
        self._lane = RecordLane(
            settings,
            [
                SilenceEnds(),
                Dispatcher(),
                EventWaits(),
                AlarmTransitions(),
                SuppressionEnds(),
                QueueBackstop(),
            ],
        )
        self._subjects = settings.subjects
        self._read = 0
        self._performed = 0

    @classmethod
    async def open(cls, settings: Settings, connection: Connection, bus: Client) -> Self:
        await _set_now(connection, START)
        return cls(settings, connection, bus, await begin_term(connection, "test"))

    async def rules(self, text: str) -> None:
        await put(self.connection, text)
        await self.drain()

    async def runbook(self, steps: str, when: str = 'type == "noted"', keys: str = "") -> None:
        """The action `book`, started by the rule `each`."""
        indented = "".join(f"    {line}\n" for line in steps.strip().splitlines())
        await self.rules(f"action:\n  name: book\n  steps:\n{indented}" + rule("each", "book", when, keys))

    async def event(self, type: str = "noted", **fields: Any) -> int:
        """Append an event, and process everything that follows from it. Returns its seq."""
        seq = await self.append(type, **fields)
        await self.drain()
        return seq

    async def append(self, type: str, **fields: Any) -> int:
        """Append an event without processing it. Returns its seq."""
        given = {"ts": self.clock.now(), "origin": "external", "type": type, **fields}
        return await append_events(self.connection, [NewEvent(**given)])

    async def alarm(self, rule: str = "hot", owner: str = "plant-7", **labels: str) -> UUID:
        """Open an alarm, and process what follows from it."""
        alarm_id = await self.open_alarm(rule, owner, **labels)
        await self.drain()
        return alarm_id

    async def open_alarm(self, rule: str = "hot", owner: str = "plant-7", **labels: str) -> UUID:
        """Open an alarm without processing it."""
        alarm_id = uuid4()
        payload = {"message": "too hot", "value": 71.5, **({"labels": labels} if labels else {})}
        await self.connection.execute(
            "insert into tocsin.alarm (id, event_rule, owner, state, severity, since, payload, correlation_id)"
            " values (%s, %s, %s, 'open', 4, tocsin.instant(), %s, %s)",
            (alarm_id, rule, owner, Jsonb(payload), alarm_id),
        )
        await self.append(
            "alarm-opened",
            origin="derived",
            alarm_id=alarm_id,
            rule=rule,
            owner=owner,
            severity=4,
            payload=payload,
        )
        return alarm_id

    async def snooze(self, alarm_id: UUID, duration: str) -> None:
        actor = Actor("ann", "test", self.clock.now())
        row = await find_alarm(self.connection, str(alarm_id))
        await snooze(self.connection, row, actor, actor.now + parse_duration(duration))
        await self.drain()

    async def silence(self, matcher: str, duration: str) -> None:
        now = self.clock.now()
        silence = NewSilence(matcher, now, now + parse_duration(duration), "a test", "ann")
        await add_silence(self.connection, silence, Actor("ann", "test", now))
        await self.drain()

    async def resolve(self, alarm_id: UUID) -> None:
        await self.connection.execute(
            "update tocsin.alarm set state = 'resolved', resolved_at = tocsin.instant() where id = %s",
            (alarm_id,),
        )
        await self.event("alarm-resolved", origin="derived", alarm_id=alarm_id, rule="hot", owner="plant-7")

    async def acknowledge(self, alarm_id: UUID) -> None:
        await self.connection.execute(
            "update tocsin.alarm set acknowledged_at = tocsin.instant(), acknowledged_by = 'ann' where id = %s",
            (alarm_id,),
        )
        await self.event("alarm-acknowledged", origin="caused", alarm_id=alarm_id, owner="plant-7")

    async def pass_time(self, duration: str) -> None:
        """Fire each timer at its instant on the way."""
        until = self.clock.now() + parse_duration(duration)
        while True:
            (row,) = await all_rows(self.connection, "select min(fire_at) as at from tocsin.timer")
            if row["at"] is None or row["at"] > until:
                break
            await self._be_at(max(row["at"], self.clock.now()))
            await self.fire()
            await self.drain()
        await self._be_at(until)

    async def fire(self) -> None:
        while (await self._term.run_once(self.clock.now())).more:
            pass

    async def drain(self) -> None:
        """Read the lane and perform steps until nothing is due."""
        while await self.read_lane():
            await self.perform_due()

    async def read_lane(self) -> bool:
        """Process the new records as the record lane does. False if there are none."""
        records = await LogReader(self.connection).read(self._read, 1000)
        if records:
            self._read = records[-1].seq
            now = self.clock.now()
            await self._lane_reads(
                [LaneMessage(one.seq, now, one.subject(self._subjects), one.body("s")) for one in records]
            )
        return bool(records)

    async def perform_due(self) -> None:
        """Perform the new steps as workers do."""
        for one in await LogReader(self.connection).read(self._performed, 1000):
            self._performed = one.seq
            if isinstance(one, StepRow):
                await perform_step(self.context, one.body("s"))

    async def _lane_reads(self, messages: list[LaneMessage]) -> None:
        plan = await self._lane.plan(self.connection, 0, messages)
        async with self.connection.transaction():
            await plan.stage(self.connection)
            await plan.write(self.connection)

    async def with_its_time(self, connection: Connection) -> Connection:
        """Move another session to the same instant."""
        await _set_now(connection, self.clock.now())
        return connection

    async def be_at(self, duration: str) -> None:
        """Move the time without firing timers."""
        await self._be_at(self.clock.now() + parse_duration(duration))

    async def _be_at(self, instant: datetime) -> None:
        self.clock.move_to(instant)
        await _set_now(self.connection, instant)

    async def action(self) -> dict[str, Any]:
        (row,) = await all_rows(self.connection, "select * from tocsin.action")
        return row

    async def history(self) -> list[str]:
        """The instants at which steps reached their states, without `due`."""
        rows = await all_rows(
            self.connection,
            "select step, attempt, state, recorded_at from tocsin.action_step where state <> 'due' order by seq",
        )
        return [
            f"{format_duration(row['recorded_at'] - START)} {row['step']} {row['state']}"
            f"{'' if row['attempt'] == 1 else ' ({})'.format(row['attempt'])}"
            for row in rows
        ]

    async def timers(self) -> int:
        (row,) = await all_rows(self.connection, "select count(*) as n from tocsin.timer")
        return int(row["n"])


async def _set_now(connection: Connection, instant: datetime) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (instant.isoformat(),))
