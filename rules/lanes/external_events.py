"""Ingests external events: appends each event of a producer to the record log, once.

Guarantee: one key is one event, however often it is sent or delivered, to however many workers: the
row of the key decides, in the transaction that appends. Another event under a known key becomes a dead
letter, so that a producer cannot make the event of another one disappear. A batch is acknowledged after its commit;
if a worker dies in between, the event is still appended once. A rejected event becomes a dead
letter with the reason, and never blocks a batch.

On failure that no event is to blame for, the batch is returned to the stream, and the service waits.
Events of different owners that fail in the same way (`tocsin.core.breaker`) are returned alone. They
are rejected if another event was appended meanwhile and they fail again. An event over which several
processes died is rejected too (`rules.lanes.attempts`).

An event whose subject names an owner belongs to that owner, with keys of its own
(`schemas/wire/ingest_event.py`).

Why competing consumers and no lane: nothing depends on the order in which external events are
appended. The record log gives them one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from uuid import UUID

import psycopg
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import RetentionPolicy, StreamConfig

from rules.lanes.attempts import MOST_DEATHS, SUSPECT_DELIVERIES, attempt, reason_of
from rules.lanes.consumers import open_consumer
from rules.lanes.dead_letters import ensure_dead_letters, send_dead_letter
from rules.lanes.lineage import LINEAGE_HEADER, parse_lineage
from rules.lanes.lineage_store import insert_lineages
from rules.lanes.message_fault import is_message_fault
from rules.lanes.quota import Quotas, Usage
from rules.metrics import EVENTS, QUOTA_REJECTED
from schemas.wire.dead_letter import dead_letter
from schemas.wire.ingest_event import IngestEvent, owned_event, read_ingest_event
from schemas.wire.subjects import ingest_owner, ingest_subject
from tocsin.core.breaker import Breaker
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection, fetch_all, open_service_session, retrying
from tocsin.core.errors import InvalidInput
from tocsin.core.record_log import append_events, extend_log
from tocsin.core.records import NewEvent
from tocsin.core.service import beat
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import Fault, fault_of, summary
from tocsin.core.streams import ensure, stream_config

_log = structlog.get_logger()
_CONSUMER = "events"
_REDELIVERY_DELAY_S = 1
_ReadEvent = tuple[Msg, IngestEvent]


def ingest_stream_config(settings: Settings) -> StreamConfig:
    """A work queue: a message stays until a worker acknowledges it."""
    return stream_config(
        settings.ingest_stream,
        [ingest_subject(settings.subjects), f"{ingest_subject(settings.subjects)}.*"],
        settings.stream_replicas,
        description="events of producers",
        retention=RetentionPolicy.WORK_QUEUE,
    )


class EventIngester:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._breaker = Breaker()
        self._waiting_for = ""
        # Whether events were returned for a common cause, and whether others were appended since.
        self._waiting = self._has_appended = False
        self._usage = Usage(Quotas(settings))

    async def run(self) -> None:
        async with (
            open_service_session(self._settings, "worker ingest") as connection,
            open_bus(self._settings, "worker ingest") as bus,
        ):
            await self._work(connection, bus)

    async def _work(self, connection: Connection, bus: Client) -> None:
        js = bus.jetstream(timeout=5)
        await ensure(js, ingest_stream_config(self._settings))
        await ensure_dead_letters(js, self._settings)
        stream = self._settings.ingest_stream
        subject = f"{self._settings.subjects}.ingest.>"
        puller = await open_consumer(
            bus, self._settings, _CONSUMER, subject, self._settings.worker_batch, stream
        )
        while True:
            beat("ingest", waiting_for=self._waiting_for)
            messages = await puller.next_batch()
            if messages:
                await self._take(connection, bus, messages)

    async def _take(self, connection: Connection, bus: Client, messages: Sequence[Msg]) -> None:
        """Ingest messages together, and alone those that were delivered before."""
        suspects = [one for one in messages if one.metadata.num_delivered >= SUSPECT_DELIVERIES]
        for message in suspects:
            async with attempt(connection, _CONSUMER, message.metadata.sequence.stream) as deaths:
                if deaths >= MOST_DEATHS:
                    await self._reject(bus, message, reason_of(deaths))
                    await message.ack()
                else:
                    await self._take_together(connection, bus, [message])
        if others := [message for message in messages if message not in suspects]:
            await self._take_together(connection, bus, others)

    async def _take_together(self, connection: Connection, bus: Client, messages: Sequence[Msg]) -> None:
        try:
            waiting = await self.ingest(connection, bus, messages)
        except Exception as error:
            if isinstance(error, psycopg.Error) and fault_of(error) is Fault.NO_PARTITION:
                await extend_log(connection)
            with suppress(NatsError, OSError):  # otherwise the server delivers them again
                for message in messages:
                    await message.nak(delay=_REDELIVERY_DELAY_S)
            raise
        for message in messages:
            if message in waiting:
                await message.nak(delay=_REDELIVERY_DELAY_S)
            else:
                await message.ack()

    async def ingest(self, connection: Connection, bus: Client, messages: Sequence[Msg]) -> list[Msg]:
        """Append the new events in their order; reject messages that are no events.

        Returns the messages that fail for a common cause and must be tried again.
        """
        events: list[_ReadEvent] = []
        for message in messages:
            try:
                events.append((message, self._read(message)))
            except InvalidInput as error:
                await self._reject(bus, message, str(error))
            except Exception as error:
                if not is_message_fault(error):
                    raise
                await self._reject(bus, message, f"it cannot be read: {error!r}")
        events = await self._within_quota(connection, bus, events)
        failures: list[tuple[_ReadEvent, Exception]] = []
        others: list[_ReadEvent] = []
        appended = await self._append(connection, events, failures, others)
        EVENTS.add(appended, "appended")
        EVENTS.add(len(events) - len(failures) - len(others) - appended, "known")
        for message, _ in others:
            sent = read_ingest_event(message.data)
            await self._reject(
                bus, message, f"the id {sent.id!r} is that of another event; use one id for one event"
            )
        if self._have_common_cause(failures, appended):
            return [message for (message, _), _ in failures]
        for (message, _), failure in failures:
            await self._reject(bus, message, f"it cannot be stored: {failure}")
        return []

    def _read(self, message: Msg) -> IngestEvent:
        event = read_ingest_event(message.data)
        try:
            owner = ingest_owner(self._settings.subjects, message.subject)
        except ValueError as error:
            raise InvalidInput(str(error), remedy="encode it as in docs/data.md") from None
        return event if owner is None else owned_event(event, owner)

    async def _within_quota(
        self, connection: Connection, bus: Client, events: Sequence[_ReadEvent]
    ) -> list[_ReadEvent]:
        """The events without those beyond the quota of their owner, which are rejected.

        An event that is delivered again was counted before.
        """
        usage = self._usage.batch()
        allowed: list[_ReadEvent] = []
        for message, event in events:
            exceeded = (
                usage.add_event(event.owner, _arrived_at(message))
                if message.metadata.num_delivered == 1
                else None
            )
            if exceeded is None:
                allowed.append((message, event))
            elif exceeded.is_first:
                await self._reject(bus, message, exceeded.reason)
            else:
                EVENTS.add(1, "rejected")
        if usage.events:
            await append_events(connection, usage.events)
        usage.keep()
        for quota, count in usage.rejected.items():
            QUOTA_REJECTED.add(count, quota)
        return allowed

    async def _append(
        self,
        connection: Connection,
        events: Sequence[_ReadEvent],
        failures: list[tuple[_ReadEvent, Exception]],
        others: list[_ReadEvent],
    ) -> int:
        """Append all events but those that fail alone; returns the number of new ones.

        `others` receives the events whose key is that of another event.
        """
        if not events:
            return 0
        try:
            new = [_new_event(message, event) for message, event in events]
            keys = [event.id for _, event in events]
            lineages = {event.event_id: _lineage(message) for message, event in events}
            appended, others_at = await retrying(lambda: append_external(connection, keys, new, lineages))
            others.extend(events[position] for position in others_at)
            return appended
        except Exception as error:
            if not is_message_fault(error):
                raise
            if len(events) == 1:
                failures.append((events[0], error))
                return 0
            half = len(events) // 2
            first = await self._append(connection, events[:half], failures, others)
            return first + await self._append(connection, events[half:], failures, others)

    def _have_common_cause(self, failures: Sequence[tuple[_ReadEvent, Exception]], appended: int) -> bool:
        if appended:
            self._breaker.succeeded()
            self._has_appended, self._waiting_for = True, ""
            return False
        if self._has_appended and self._waiting:
            self._waiting = False
            return False
        now_s = time.monotonic()
        common = [
            failure
            for (_, event), failure in failures
            if not self._breaker.failed(failure, event.owner, now_s)
        ]
        if common:
            self._waiting, self._has_appended = True, False
            self._waiting_for = f"events of different owners fail in the same way ({summary(common[0])})"
            _log.warning("events wait", count=len(failures), error=self._waiting_for)
        return bool(common)

    async def _reject(self, bus: Client, message: Msg, reason: str) -> None:
        _log.warning("event rejected", reason=reason)
        EVENTS.add(1, "rejected")
        letter = dead_letter(reason, message.subject, _arrived_at(message), message.data)
        identity = f"{self._settings.ingest_stream}/{message.metadata.sequence.stream}"
        await send_dead_letter(bus.jetstream(), self._settings, "event", letter, identity)


async def append_external(
    connection: Connection,
    keys: Sequence[str],
    events: Sequence[NewEvent],
    lineages: Mapping[UUID, Sequence[str]] | None = None,
) -> tuple[int, list[int]]:
    """Append the events whose keys are new; returns their number, and which are another event under a key.

    `lineages`: the rules that led to each event.
    """
    digests = [_digest(event) for event in events]
    async with connection.transaction():
        columns = {"keys": list(keys), "event_ids": [event.id for event in events], "digests": digests}
        rows = await fetch_all(connection, "rules.lanes/insert_ingest_events", columns)
        new = {event_id for (event_id,) in rows}
        first = {event.id: event for event in reversed(events)}
        ingested = [event for event in events if event.id in new and first[event.id] is event]
        if ingested:
            by_id = {event.id: (lineages or {}).get(event.id, ()) for event in ingested}
            await insert_lineages(connection, {id: lineage for id, lineage in by_id.items() if lineage})
            await append_events(connection, ingested)
        if len(ingested) == len(events):
            return len(ingested), []
        known = dict(await fetch_all(connection, "rules.lanes/list_ingest_digests", {"keys": list(keys)}))
    # A key without a digest is older than digests: every event under it counts as the same.
    others = [
        position
        for position, (key, digest) in enumerate(zip(keys, digests, strict=True))
        if known.get(key) is not None and bytes(known[key]) != digest
    ]
    return len(ingested), others


def _digest(event: NewEvent) -> bytes:
    """Identifies the content. Instants and correlation are left out: a producer that tries again may set new ones."""
    content = [event.type, event.owner, event.severity, event.payload]
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).digest()


def _new_event(message: Msg, event: IngestEvent) -> NewEvent:
    return NewEvent(
        ts=event.ts or _arrived_at(message),
        origin="external",
        type=event.type,
        payload=event.payload,
        owner=event.owner,
        severity=event.rank,
        correlation_id=event.correlation_id or _correlation_id(message),
        id=event.event_id,
    )


def _lineage(message: Msg) -> tuple[str, ...]:
    return parse_lineage((message.headers or {}).get(LINEAGE_HEADER, ""))


def _correlation_id(message: Msg) -> UUID | None:
    """The correlation id that the producer passed on; None if the header has none."""
    with suppress(ValueError):
        return UUID((message.headers or {}).get("Tocsin-Correlation-Id", ""))
    return None


def _arrived_at(message: Msg) -> datetime:
    return message.metadata.timestamp.astimezone(UTC)
