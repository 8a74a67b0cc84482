"""Producer: sends datapoints and events from a service or from the command line.

Guarantees:
- `flush`, and leaving the block, return when JetStream has acknowledged everything that was sent.
  Nothing is dropped without an error.
- Datapoints of one owner arrive in the order in which they were sent: an owner has one message in
  flight, and what is sent meanwhile goes into the next one.
- A message that is sent again after a lost acknowledgement is stored once (`Nats-Msg-Id`, for two
  minutes).

Back-pressure: `send` returns at once until `max_waiting` datapoints are unacknowledged, then it
waits.

On failure: `InvalidInput` at once for a datapoint or event that no worker would accept. If a
message cannot be delivered for `timeout_s`, the next `send` or `flush` raises `Unreachable`. The
producer keeps the datapoints, and `flush` tries them again.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import defaultdict, deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext
from nats.js.errors import NoStreamResponseError

from schemas.wire.check_in import CheckIn, Status, check_in_datapoints, check_owner
from schemas.wire.datapoint import MAX_BYTES, Value, check_datapoint
from schemas.wire.ingest_event import owned_event, read_ingest_event
from schemas.wire.subjects import datapoint_subject, ingest_subject
from tocsin.core.addresses import with_addresses
from tocsin.core.bus import connect_bus
from tocsin.core.errors import InvalidInput, Unreachable
from tocsin.core.instant import check_aware, instant_text
from tocsin.core.settings import Settings, read_settings

_MAX_BATCH = 500
_ACK_S = 5.0
_RETRY_S = 0.1
# Bytes of a message other than its datapoints: braces, and headers, which count as payload.
_ENVELOPE = 1024


class Producer:
    """`async with Producer() as producer`; reads TOCSIN_NATS and TOCSIN_NAMESPACE by default.

    Without TOCSIN_NATS it uses the `tocsin up` that runs in TOCSIN_DATA, or in the directory."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        max_waiting: int = 10_000,
        timeout_s: float = 30.0,
        bus: Client | None = None,
    ) -> None:
        """`bus` is a connection to use; it stays open. Without one the producer opens its own."""
        self._settings = settings or with_addresses(read_settings())
        self._max_waiting = max_waiting
        self._timeout_s = timeout_s
        self._bus: Client | None = bus
        self._is_own_bus = bus is None
        self._waiting: defaultdict[str, deque[bytes]] = defaultdict(deque)
        self._count = 0
        self._in_flight: dict[str, tuple[list[bytes], str]] = {}
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._settled = asyncio.Event()
        self._error: Exception | None = None

    async def __aenter__(self) -> Self:
        if self._is_own_bus:
            self._bus = await connect_bus(self._settings, "producer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            for sender in self._senders.values():
                sender.cancel()
            await asyncio.gather(*self._senders.values(), return_exceptions=True)
            assert self._bus is not None
            if self._is_own_bus:
                with suppress(NatsError, OSError):  # the server may be gone
                    await self._bus.close()

    async def send(
        self,
        owner: str,
        key: str,
        value: Value,
        *,
        ts: datetime | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Queue one datapoint. It is stored when `flush` has returned."""
        entry = _entry(owner, key, value, ts, labels)
        while self._count >= self._max_waiting and self._error is None:
            self._settled.clear()
            await self._settled.wait()
        self._raise_error()
        self._waiting[owner].append(entry)
        self._count += 1
        self._start(owner)

    async def flush(self) -> None:
        """Wait until everything that was sent is acknowledged."""
        for owner in [owner for owner, entries in self._waiting.items() if entries]:
            self._start(owner)
        while self._count and self._error is None:
            self._settled.clear()
            await self._settled.wait()
        self._raise_error()

    async def emit(
        self,
        type: str,
        *,
        owner: str = "",
        payload: Mapping[str, Any] | None = None,
        key: str | None = None,
        ts: datetime | None = None,
        severity: str | None = None,
        correlation_id: uuid.UUID | None = None,
        by_owner: bool = False,
    ) -> uuid.UUID:
        """Send one event, wait until JetStream has stored it, and return its id.

        The same `key` again is the same event. `by_owner` sends it on the subject of its owner, for a
        producer whose NATS user may send for its owners only: `key` is then one of the owner, and no other
        producer can take it.
        """
        fields = {
            "id": key or str(uuid.uuid4()),
            "type": type,
            "owner": owner,
            "payload": dict(payload or {}),
            "ts": None if ts is None else _instant(ts),
            "severity": severity,
            "correlation_id": None if correlation_id is None else str(correlation_id),
        }
        body = _json(fields, "payload")
        event = read_ingest_event(body)
        subject = ingest_subject(self._settings.subjects, owner if by_owner else None)
        if by_owner:
            event = owned_event(event, owner)
        await self._publish(subject, body, str(uuid.uuid4()), self._settings.ingest_stream)
        return event.event_id

    async def check_in(
        self,
        name: str,
        status: Status = "success",
        *,
        owner: str | None = None,
        run: str = "",
        exit_code: int | None = None,
        duration_s: float | None = None,
        log: str = "",
        key: str | None = None,
    ) -> None:
        """Check in to a heartbeat, and wait until JetStream has stored it.

        `owner` is by default the name of the heartbeat. `run` pairs the start and the end of a run. With an
        `exit_code` other than 0 the status is `fail`. Of `log` the last 4,096 characters are kept. The same
        `key` within two minutes is the same check-in.
        """
        if exit_code is not None and status != "start":
            status = "fail" if exit_code else status
        datapoints = check_in_datapoints(name, CheckIn(status, run, exit_code, duration_s), log)
        owner = name if owner is None else owner
        check_owner(owner)
        body = _json({"batch": datapoints}, "check-in")
        subject = datapoint_subject(self._settings.subjects, owner, "")
        await self._publish(subject, body, key or str(uuid.uuid4()), self._settings.data_stream)

    def _start(self, owner: str) -> None:
        if owner not in self._senders:
            self._senders[owner] = asyncio.create_task(self._deliver(owner), name=f"datapoints of {owner!r}")

    async def _deliver(self, owner: str) -> None:
        """Send the owner's messages one after the other until none is waiting."""
        waiting = self._waiting[owner]
        try:
            while waiting:
                # A message that was given up is repeated with its id, because it may have been
                # stored.
                entries, identity = self._in_flight.setdefault(
                    owner, (self._batch(waiting), str(uuid.uuid4()))
                )
                subject = datapoint_subject(self._settings.subjects, owner, "")
                body = b'{"batch":[' + b",".join(entries) + b"]}"
                await self._publish(subject, body, identity, self._settings.data_stream)
                del self._in_flight[owner]
                for _ in entries:
                    waiting.popleft()
                self._count -= len(entries)
                self._settled.set()
            del self._waiting[owner]
        except Exception as error:
            self._error = error
        finally:
            del self._senders[owner]
            self._settled.set()

    def _batch(self, waiting: deque[bytes]) -> list[bytes]:
        """The first waiting datapoints that fit in one message."""
        assert self._bus is not None
        space = min(MAX_BYTES, self._bus.max_payload) - _ENVELOPE
        entries: list[bytes] = []
        for entry in waiting:
            space -= len(entry) + 1
            if entries and (len(entries) == _MAX_BATCH or space < 0):
                break
            entries.append(entry)
        return entries

    async def _publish(self, subject: str, body: bytes, identity: str, stream: str) -> None:
        assert self._bus is not None, "a producer is used inside `async with`"
        js: JetStreamContext = self._bus.jetstream(timeout=_ACK_S)
        loop = asyncio.get_running_loop()
        give_up_s = loop.time() + self._timeout_s
        while True:
            try:
                await js.publish(subject, body, stream=stream, headers={"Nats-Msg-Id": identity})
                return
            except NoStreamResponseError:
                failure = Unreachable(
                    f"no stream takes {subject!r}",
                    remedy="start `tocsin run worker`, which creates it; if one has run before, jetstream is "
                    "down or its cluster has no majority",
                )
            except (NatsError, OSError, TimeoutError) as error:
                failure = Unreachable(
                    f"nats does not acknowledge ({error or type(error).__name__})",
                    remedy="check that it runs",
                )
            if loop.time() > give_up_s:
                raise failure
            await asyncio.sleep(_RETRY_S)

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


def _entry(
    owner: str, key: str, value: Value, ts: datetime | None, labels: Mapping[str, str] | None
) -> bytes:
    fields: dict[str, Any] = {"key": key, "value": value}
    if ts is not None:
        fields["ts"] = _instant(ts)
    if labels:
        fields["labels"] = dict(labels)
    check_datapoint(owner, fields)
    return _json(fields, "value")


def _instant(ts: datetime) -> str:
    check_aware(ts, "ts")
    return instant_text(ts)


def _json(fields: dict[str, Any], what: str) -> bytes:
    try:
        return json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the {what} is not JSON ({error})", remedy="send texts, numbers, lists and objects"
        ) from None


async def send(
    owner: str,
    key: str,
    value: Value,
    *,
    ts: datetime | None = None,
    labels: Mapping[str, str] | None = None,
    settings: Settings | None = None,
) -> None:
    """Send one datapoint and wait for its acknowledgement. For several, use a `Producer`."""
    async with Producer(settings) as producer:
        await producer.send(owner, key, value, ts=ts, labels=labels)


async def emit(
    type: str,
    *,
    owner: str = "",
    payload: Mapping[str, Any] | None = None,
    key: str | None = None,
    settings: Settings | None = None,
    **more: Any,
) -> uuid.UUID:
    """Send one event, wait for its acknowledgement and return its id.

    For several, use a `Producer`.
    """
    async with Producer(settings) as producer:
        return await producer.emit(type, owner=owner, payload=payload, key=key, **more)


async def check_in(
    name: str, status: Status = "success", *, settings: Settings | None = None, **more: Any
) -> None:
    """Check in to a heartbeat and wait for the acknowledgement. `more`: see `Producer.check_in`."""
    async with Producer(settings) as producer:
        await producer.check_in(name, status, **more)
