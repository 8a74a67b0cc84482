"""Canaries: small messages by which a worker finds out whether the data stream accepts messages.

Guarantee: while a worker reads a partition, and no message of it comes for half a second, the
worker publishes a canary to it: on a subject of the data stream, through the same transform as a
datapoint, and it waits for the acknowledgement. A canary is read like any message, and its arrival
moves the watermark. It is not a datapoint: it is stored nowhere, belongs to no series and never
becomes a dead letter.

Why: if producers cannot publish, no datapoint arrives. Without canaries this looks the same as
series that have no more data.

The server deletes a canary after a minute. A worker that takes over reads those that are left, and
otherwise finds the time without messages as an arrival gap.

On failure: the error is logged once and shown by `tocsin doctor`, and the next canary follows half
a second later. No deadline passes meanwhile, because the watermark stands still. If the stream still
stores messages, but later than the acknowledgement is waited for, the stream is slow
(`rules/lanes/stream_pace.py`), and the time between its messages counts as arrival gaps.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from functools import partial
from typing import Protocol

import structlog
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext

from rules.lanes.partition import PartitionKey
from rules.lanes.stream_pace import StreamPace
from rules.metrics import CANARIES

_log = structlog.get_logger()
INTERVAL_S = 0.5
_ACK_TIMEOUT_S = 2.0
# A worker whose own loop was this late does not know why an acknowledgement is missing.
_BLOCKED_S = 1.0
_HEADERS = {"Nats-TTL": "60s"}


class CanaryTarget(Protocol):
    """A partition to which canaries are sent."""

    @property
    def canary_subject(self) -> str | None:
        """None: its lane has no canaries."""

    @property
    def quiet_s(self) -> float:
        """Seconds since the last message came."""


class CanarySender:
    """Sends the canaries of one worker."""

    def __init__(
        self, js: JetStreamContext, targets: Mapping[PartitionKey, CanaryTarget], pace: StreamPace
    ) -> None:
        """`targets` are the partitions that the worker reads; the caller changes them.

        `pace` learns of acknowledgements that are late.
        """
        self.errors: dict[PartitionKey, str] = {}
        """Why the last canary of a partition was not accepted."""
        self._js = js
        self._pace = pace
        self._targets = targets
        self._sending: dict[PartitionKey, asyncio.Task[None]] = {}
        self._blocked_at_s = -math.inf

    async def run(self) -> None:
        try:
            while True:
                self._send_due()
                began_s = time.monotonic()
                await asyncio.sleep(INTERVAL_S)
                if time.monotonic() - began_s > INTERVAL_S + _BLOCKED_S:
                    self._blocked_at_s = time.monotonic()
        finally:
            for task in self._sending.values():
                task.cancel()

    def _send_due(self) -> None:
        for key in self.errors.keys() - self._targets.keys():
            del self.errors[key]
        for key, target in self._targets.items():
            subject = target.canary_subject
            if subject is not None and key not in self._sending and target.quiet_s >= INTERVAL_S:
                task = asyncio.create_task(self._send(key, subject), name=f"canary {key[1]}")
                self._sending[key] = task
                task.add_done_callback(partial(self._end, key))

    def _end(self, key: PartitionKey, task: asyncio.Task[None]) -> None:
        del self._sending[key]

    async def _send(self, key: PartitionKey, subject: str) -> None:
        began_s = time.monotonic()
        try:
            await self._js.publish(subject, timeout=_ACK_TIMEOUT_S, headers=_HEADERS)
        except (NatsError, OSError, TimeoutError) as error:
            CANARIES.add(1, "failed")
            if key not in self.errors:
                _log.warning("canary not accepted", partition=key[1], error=error)
            self.errors[key] = str(error) or "no acknowledgement in time"
            if isinstance(error, TimeoutError) and self._blocked_at_s < began_s:
                self._pace.canary_late(key, time.monotonic())
        else:
            CANARIES.add(1, "accepted")
            self._pace.canary_in_time(key, time.monotonic())
            if self.errors.pop(key, None) is not None:
                _log.info("canary accepted again", partition=key[1])
