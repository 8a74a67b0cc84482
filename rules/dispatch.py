"""Dispatch: events of the stream start the actions of the rules that match them.

Guarantee (I7): an action starts at most once per (action_rule, event), however often the message is
delivered and to however many workers: the row's uniqueness decides. A batch is acknowledged after its one
transaction committed. On failure nothing is acknowledged, and the batch comes back.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from psycopg.types.json import Jsonb
from pydantic import ValidationError

from rules.consumers import open_consumer
from rules.current import RuleBook
from rules.judging import Judge, Match
from schemas.event import Event
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection, connect, retrying, statement
from tocsin.core.errors import InvalidInput
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_ACTIONS = uuid.UUID("0b7c6ce5-0f0b-5d0e-8b0a-6f2d4f5f9a21")


@dataclass(frozen=True)
class Start:
    event: Event
    match: Match

    @property
    def id(self) -> uuid.UUID:
        return uuid.uuid5(_ACTIONS, f"{self.match.rule}/{self.event.id}")


class Dispatcher:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._book = RuleBook(Judge, *Judge.KINDS)
        self.started = 0

    async def run(self) -> None:
        connection = await connect(self._settings, "worker dispatch")
        try:
            bus = await connect_bus(self._settings, "worker dispatch")
            try:
                puller = await open_consumer(
                    bus,
                    self._settings,
                    "rules",
                    f"{self._settings.subjects}.event.>",
                    self._settings.worker_batch,
                )
                while True:
                    messages = await puller.next_batch()
                    if messages:
                        await self.dispatch(connection, [message.data for message in messages])
                        await _acknowledge(messages)
            finally:
                with suppress(NatsError, OSError):  # the server may be gone
                    await bus.close()
        finally:
            await connection.close()

    async def dispatch(self, connection: Connection, bodies: Sequence[bytes]) -> int:
        """Start what the events call for; how many actions are new."""
        read = [event for body in bodies if (event := _event(body)) is not None]
        if not read:
            return 0
        await self._book.refresh(connection, min(event.seq for event in read))
        starts = [Start(event, match) for event in read for match in self._matches(event)]
        if not starts:
            return 0
        started = await retrying(lambda: _start(connection, starts))
        self.started += started
        return started

    def _matches(self, event: Event) -> list[Match]:
        try:
            return self._book.at(event.seq).judge(event.facts())
        except InvalidInput as error:
            _log.error("event cannot be judged", seq=event.seq, error=error)
            return []


def _event(body: bytes) -> Event | None:
    """Nothing of ours is unreadable; a foreign message on our subjects is set aside, not retried for ever."""
    try:
        return Event.model_validate_json(body)
    except ValidationError as error:
        _log.error("unreadable message in the stream", error=error)
        return None


async def _start(connection: Connection, starts: Sequence[Start]) -> int:
    columns: dict[str, list[Any]] = {
        "ids": [start.id for start in starts],
        "names": [start.match.action for start in starts],
        "rules": [start.match.rule for start in starts],
        "event_ids": [start.event.id for start in starts],
        "event_seqs": [start.event.seq for start in starts],
        "documents": [Jsonb(start.match.document) for start in starts],
        "owners": [start.event.owner for start in starts],
        "correlations": [start.event.correlationid for start in starts],
    }
    row = await (await connection.execute(statement("rules/start_actions"), columns)).fetchone()
    return int(row[0]) if row else 0


async def _acknowledge(messages: Sequence[Msg]) -> None:
    for message in messages:
        await message.ack()
