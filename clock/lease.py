"""A lease on a role: a NATS KV key, written by compare-and-set, that one process has at a time.

The clock and the publisher use it through `hold_lease`, so that one process at a time does the work
of the role.

Guarantees: at most one process considers itself the holder at any instant. The holder counts its
deadline from before it sent the renewal, the server counts the expiry from after it received it, so
the holder gives up first. This assumes that both hosts measure time at about the same rate. A clean
stop hands over within milliseconds. A dead holder is replaced when its key expires. A holder whose
work makes no progress for five TTLs gives the lease up: the loop that does the work calls `keep` in
each round. The id of a holder is unique per process start, so a restarted process never mistakes
its predecessor's key for its own.

Why this way: the renewal has its own thread, event loop and connection, so that seconds of catch-up
work do not starve it. nats-py's `kv.update` drops the TTL, and `kv.get` mistakes an expiry marker
for a live key, so the key is written and read with plain requests. Candidates receive releases on a
plain subscription and also poll every TTL/4, because KV watchers stop receiving after a restart of
NATS.

On failure: without NATS, no process gets the lease, and each tries again until NATS answers. Safety
never depends on the lease: Postgres rejects the commits of a former holder (see `clock.term`). If
the clock of a NATS server is set back, a key expires too late: a candidate that has seen the same
revision for two TTLs of its own clock takes the key.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import DiscardPolicy, StreamConfig
from nats.js.errors import NotFoundError

from clock.metrics import LEADER, STALLS
from clock.time_source import steady_s
from tocsin.core.bus import open_bus
from tocsin.core.errors import TocsinError
from tocsin.core.nats_client import NatsForbidden
from tocsin.core.service import beat
from tocsin.core.settings import Settings
from tocsin.core.streams import ensure, find, stream_config

_log = structlog.get_logger()
# Error codes of NATS.
_WRONG_LAST_SEQUENCE = 10071
# A server of a cluster has an earlier write of this key, which too few others have confirmed.
_NOT_REPLICATED = 10164
_NO_MESSAGE = 10037
_OUTAGE_ERRORS = (NatsError, TocsinError, OSError, TimeoutError)
# In TTLs. A catch-up after a long outage calls `keep` between its batches, every second or two.
_STALLED_AFTER = 5
_ABANDONED_AFTER = 2
# Three times the longest TTL.
_LONGEST_KEY_S = 180.0
_MAX_KEY_BYTES = 4096
_BUCKET_SETTINGS = ("max_age", "max_msg_size", "num_replicas", "allow_rollup_hdrs", "allow_msg_ttl")
_HOLDER = re.compile(r"[^/\s]{1,255}/[0-9]{1,10}/[0-9a-f]{8}")


class Lease:
    """One process's claim on a role. `start` begins to compete, `stop` releases and ends."""

    def __init__(self, settings: Settings, role: str) -> None:
        self.role = role
        self.holder = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        self._settings = settings
        self._ttl_s = settings.lease_ttl_s
        self._subject = f"$KV.{settings.lease_bucket}.{role}"
        self._deadline_s = 0.0
        self._progress_s = steady_s()
        # The last revision of another holder's key, and when this process first saw it.
        self._seen: tuple[int, float] | None = None
        # Of the caller's event loop.
        self._owner_loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        # Of the thread that renews.
        self._thread = threading.Thread(target=self._run_thread, name=f"lease {role}", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        # Set by the caller, read by the thread.
        self._resigned = threading.Event()
        self._stopping = threading.Event()
        self.last_error = ""
        """The error that keeps this process from competing; empty while NATS answers."""

    @property
    def held(self) -> bool:
        return steady_s() < self._deadline_s

    def keep(self) -> bool:
        """Report that the work makes progress. True while the lease is held."""
        self._progress_s = steady_s()
        return self.held

    async def wait_until_held(self) -> None:
        while not self.keep():
            beat(self.role, waiting_for=self.last_error, rest_s=self._ttl_s / 4)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._ttl_s / 4):
                    await self._changed.wait()
            # Cleared before `held` is read again: a change in between sets it again.
            self._changed.clear()

    def resign(self) -> None:
        """Release the lease and compete again. For a leader that Postgres has rejected."""
        self._deadline_s = 0.0
        self._resigned.set()

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._stopping.set()
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # the loop may have ended already
                self._loop.call_soon_threadsafe(self._task.cancel)
        await asyncio.to_thread(self._thread.join)

    def _run_thread(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        while not self._stopping.is_set():
            try:
                async with open_bus(self._settings, f"lease {self.role}") as bus:
                    await self._compete(bus)
            # Any exception: if the thread ended here, this process would never compete for the role
            # again.
            except Exception as error:
                await self._wait_after(error)

    async def _wait_after(self, error: Exception) -> None:
        log = _log.debug if self.last_error else _log.warning
        log("lease waits for nats", role=self.role, error=error)
        self.last_error = str(error) or type(error).__name__
        await asyncio.sleep(self._ttl_s / 4)

    async def _compete(self, bus: Client) -> None:
        await _ensure_bucket(bus, self._settings)
        key_changed = asyncio.Event()

        async def note_change(_: Msg) -> None:
            key_changed.set()

        await bus.subscribe(self._subject, cb=note_change)
        revision: int | None = None
        try:
            while not self._stopping.is_set():
                key_changed.clear()
                revision = await self._take(bus) if revision is None else await self._renew(bus, revision)
                self.last_error = ""
                if revision is None:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._ttl_s / 4):
                            await key_changed.wait()
                elif await self._rest_until_renewal() or self._is_stalled():
                    await self._release(bus, revision)
                    revision = None
                    # Other candidates go first.
                    await asyncio.sleep(self._ttl_s / 4)
        finally:
            # Also without a revision: a cancelled write may have taken the key.
            await self._release(bus, revision)

    async def _rest_until_renewal(self) -> bool:
        """Rest for a third of the TTL. Returns whether the lease was resigned meanwhile."""
        rest_until = steady_s() + self._ttl_s / 3
        # Polled: the caller sets `_resigned` from another thread, and an asyncio event is not thread-safe.
        while steady_s() < rest_until:
            if self._resigned.is_set():
                self._resigned.clear()
                return True
            await asyncio.sleep(min(0.05, self._ttl_s / 20))
        return False

    def _is_stalled(self) -> bool:
        """Whether the work has made no progress for so long that another process should do it."""
        stalled_s = steady_s() - self._progress_s
        if stalled_s <= _STALLED_AFTER * self._ttl_s:
            return False
        STALLS.add(1, self.role)
        _log.error(
            "lease given up, no progress", role=self.role, holder=self.holder, stalled_s=round(stalled_s)
        )
        return True

    async def _take(self, bus: Client) -> int | None:
        """Take the key if it is free and this process works. Returns its revision, or None."""
        self._resigned.clear()
        if steady_s() - self._progress_s > _STALLED_AFTER * self._ttl_s:
            return None
        expected, holder = await _read_key(bus, self._settings, self._subject)
        if holder is not None and not is_holder(holder):
            _log.error("lease key is not that of a process, it is replaced", role=self.role, key=holder[:80])
            holder = None
        # The key may be our own: a write arrived, and the connection was lost before the answer.
        if holder is not None and holder != self.holder and not self._is_abandoned(expected):
            return None
        revision = await self._write(bus, expected)
        if revision is not None:
            _log.info("lease taken", role=self.role, holder=self.holder)
        return revision

    def _is_abandoned(self, revision: int) -> bool:
        """Whether the key of another holder should have expired: it was not renewed for two TTLs."""
        if self._seen is None or self._seen[0] != revision:
            self._seen = (revision, steady_s())
        return steady_s() - self._seen[1] > _ABANDONED_AFTER * self._ttl_s

    async def _renew(self, bus: Client, revision: int) -> int | None:
        """Renew the key. Returns the new revision, or None if the lease is lost.

        A renewal that is not answered is repeated until the deadline.
        """
        while steady_s() < self._deadline_s:
            try:
                renewed = await self._write(bus, revision)
                if renewed is not None:
                    return renewed
                # Rejected: another process holds it, or our own unanswered renewal has arrived
                # after all.
                seq, holder = await _read_key(bus, self._settings, self._subject)
                if holder != self.holder:
                    break
                revision = seq
            except _OUTAGE_ERRORS:
                await asyncio.sleep(self._ttl_s / 20)
        self._deadline_s = 0.0
        _log.warning("lease lost", role=self.role, holder=self.holder)
        return None

    async def _write(self, bus: Client, expected: int) -> int | None:
        """Write the key if its revision is `expected`. Returns the new revision, or None."""
        asked_s = steady_s()
        headers = {
            "Nats-Expected-Last-Subject-Sequence": str(expected),
            "Nats-TTL": f"{int(self._ttl_s * 1000)}ms",
        }
        revision = await _compare_and_set(
            bus, self._subject, self.holder.encode(), headers, timeout=self._ttl_s / 3
        )
        if revision is not None and not self._resigned.is_set():
            self._deadline_s = asked_s + self._ttl_s
            with suppress(RuntimeError):  # the owner's loop may be closing
                self._owner_loop.call_soon_threadsafe(self._changed.set)
        return revision

    async def _release(self, bus: Client, revision: int | None) -> None:
        """Delete the key. `revision` may be outdated: a cancelled write may have arrived."""
        self._deadline_s = 0.0
        if not bus.is_connected:
            return
        with suppress(*_OUTAGE_ERRORS):
            async with asyncio.timeout(self._ttl_s / 2):
                while not await self._delete(bus, revision):
                    revision, holder = await _read_key(bus, self._settings, self._subject)
                    if holder != self.holder:
                        return
                _log.info("lease released", role=self.role, holder=self.holder)

    async def _delete(self, bus: Client, revision: int | None) -> bool:
        if revision is None:
            return False
        headers = {"Nats-Expected-Last-Subject-Sequence": str(revision), "KV-Operation": "DEL"}
        return await _compare_and_set(bus, self._subject, b"", headers, timeout=self._ttl_s / 4) is not None


def is_holder(text: str) -> bool:
    """Whether a key has the form that `Lease` writes: host, process and a random part."""
    return _HOLDER.fullmatch(text) is not None


@asynccontextmanager
async def hold_lease(settings: Settings, role: str) -> AsyncIterator[Lease]:
    """Compete for the lease of `role` for the length of the block, and release it at its end."""
    lease = Lease(settings, role)
    lease.start()
    LEADER.follow(lambda: lease.held, role)
    try:
        yield lease
    finally:
        LEADER.set(0, role)
        await lease.stop()


async def current_holder(bus: Client, settings: Settings, role: str) -> str | None:
    """The holder of the role in NATS; None if there is none."""
    try:
        return (await _read_key(bus, settings, f"$KV.{settings.lease_bucket}.{role}"))[1]
    except NotFoundError:
        return None


def lease_bucket_config(settings: Settings) -> StreamConfig:
    """The bucket of all leases.

    A user that may write one key can do nothing to another: without rollups a message removes only its
    own predecessor. A key ends at `_LONGEST_KEY_S` even if it was written without a TTL.
    """
    return stream_config(
        f"KV_{settings.lease_bucket}",
        [f"$KV.{settings.lease_bucket}.>"],
        settings.stream_replicas,
        max_msgs_per_subject=1,
        discard=DiscardPolicy.NEW,
        max_age=_LONGEST_KEY_S,
        max_msg_size=_MAX_KEY_BYTES,
        deny_delete=True,
        allow_msg_ttl=True,
    )


async def _ensure_bucket(bus: Client, settings: Settings) -> None:
    js = bus.jetstream(timeout=2)
    bucket = lease_bucket_config(settings)
    info = await find(js, str(bucket.name))
    if info is None:
        await ensure(js, bucket)
    elif any((getattr(info.config, name) or 0) != (getattr(bucket, name) or 0) for name in _BUCKET_SETTINGS):
        # Created by an earlier version, or with another number of replicas.
        try:
            await js.update_stream(bucket)
        except NatsForbidden:
            _log.warning("lease bucket has other settings, run `tocsin streams create`", bucket=bucket.name)


async def _compare_and_set(
    bus: Client, subject: str, value: bytes, headers: dict[str, str], timeout: float
) -> int | None:
    """Write the key. Returns the new revision, or None if its revision has changed meanwhile."""
    reply = json.loads((await bus.request(subject, value, timeout=timeout, headers=headers)).data)
    error = reply.get("error")
    if error is None:
        return int(reply["seq"])
    if error.get("err_code") == _WRONG_LAST_SEQUENCE:
        return None
    if error.get("err_code") == _NOT_REPLICATED:
        raise OSError(
            f"an earlier write of the lease key {subject!r} is not replicated: more than half of the NATS servers "
            "must run"
        )
    raise OSError(f"nats rejected the lease key {subject!r}: {error.get('description')}")


async def _read_key(bus: Client, settings: Settings, subject: str) -> tuple[int, str | None]:
    """The last revision of the key and its live holder.

    Expiry markers and releases have no holder.
    """
    js = bus.jetstream(timeout=max(1.0, settings.lease_ttl_s / 2))
    try:
        message = await js.get_last_msg(f"KV_{settings.lease_bucket}", subject)
    except NotFoundError as error:
        if error.err_code == _NO_MESSAGE:  # a missing bucket has another code
            return 0, None
        raise
    headers = message.headers or {}
    gone = "KV-Operation" in headers or "Nats-Marker-Reason" in headers or not message.data
    return int(message.seq or 0), None if gone else (message.data or b"").decode("utf-8", "replace")
