"""The continuous audit: is the stream still what the log says?

Guarantee: every `cdc_audit_s` the leader looks how far the stream is behind the log, in records and in
seconds, that the stream has no holes, and that a sample of its messages is what the log has at their
places: half of it recent, half from anywhere. What it finds is in `cdc_report`. A difference stays reported
until that very message is seen to be right, or is no longer kept: a luckier sample does not mend anything.

Why a sample: a whole comparison reads everything twice; `tocsin cdc verify` does that. What the publisher
itself must not pass (a stream that is ahead, a hole of the log) stops it; here it is only noticed to be
mended.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from cdc.compare import Stored, difference
from cdc.errors import LogHole, StreamAhead
from cdc.log_reader import LogReader
from cdc.messages import message_of
from cdc.report import read_report, report_problem
from cdc.stream import find_stream
from tocsin.core.db import Connection, statement
from tocsin.core.settings import Settings

_TIMEOUT_S = 3.0
_SAMPLE = 16
_RECENT = 10_000


@dataclass(frozen=True)
class Problem:
    kind: str
    detail: str
    remedy: str
    seq: int | None = None


class Audit:
    def __init__(
        self,
        settings: Settings,
        connection: Connection,
        bus: Client,
        holder: str,
        chance: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._reader = LogReader(connection)
        self._bus = bus
        self._js = bus.jetstream(timeout=_TIMEOUT_S)
        self._holder = holder
        self._chance = chance or random.Random()

    async def run(self) -> None:
        while True:
            await self.run_once()
            await asyncio.sleep(self._settings.cdc_audit_s)

    async def run_once(self) -> Problem | None:
        info = await find_stream(self._js, self._settings)
        if info is None:  # lost a moment ago: the publisher makes it anew
            return None
        first, last = int(info.state.first_seq), int(info.state.last_seq)
        # The head after the stream: a commit that is published between the two must not look like a stream ahead.
        head = await self._reader.head()
        # Expiry between counting and numbering cannot look like a hole: it takes from the beginning only.
        holes = max(0, last - first + 1 - int(info.state.messages)) if info.state.messages else 0
        known = (await read_report(self._connection)).seq
        sample = self._sample(max(first, await self._reader.horizon()), min(last, head), known)
        problem = await self._verdict(head, last, holes) or await self._compare(sample)
        findings = {
            "holder": self._holder,
            "head": head,
            "first_seq": first,
            "last_seq": last,
            "lag_s": await self._reader.lag_s(last),
            "compared": len(sample),
        }
        await self._connection.execute(statement("cdc/write_findings"), findings)
        if problem is None:
            await report_problem(self._connection, None)
        else:
            await report_problem(
                self._connection, problem.kind, problem.detail, problem.seq, remedy=problem.remedy
            )
        return problem

    def _sample(self, first: int, last: int, known: int | None) -> list[int]:
        """`known` is a difference that was found before: it is looked at again as long as it is kept."""
        if last < first:
            return []
        recent = range(max(first, last - _RECENT + 1), last + 1)
        anywhere = range(first, last + 1)
        chosen = {known} if known is not None and known in anywhere else set()
        for part in (recent, anywhere):
            chosen.update(self._chance.sample(part, min(_SAMPLE // 2, len(part))))
        return sorted(chosen)

    async def _verdict(self, head: int, last: int, holes: int) -> Problem | None:
        stream = self._settings.stream
        if last > head:
            return Problem(
                StreamAhead.kind,
                f"the stream {stream!r} is at {last}, the log only at {head}",
                "look at `tocsin cdc adopt`",
            )
        if holes:
            return Problem(
                "stream-hole",
                f"the stream {stream!r} lacks {holes} messages between its first and its last",
                "rebuild it with `tocsin cdc rebuild`",
            )
        if last < head and not await self._has(last + 1):
            return Problem(
                LogHole.kind,
                f"record {last + 1} is missing from the log",
                "look at `tocsin cdc adopt`",
                last + 1,
            )
        return None

    async def _has(self, seq: int) -> bool:
        """Records that were dropped on purpose are no hole: the publisher records and passes them."""
        return (
            await self._reader.id_at(seq) is not None
            or bool(await self._reader.read_gap(seq - 1, 1))
            or await self._reader.horizon() > seq
        )

    async def _compare(self, sample: list[int]) -> Problem | None:
        for seq in sample:
            wrong = await self._difference(seq)
            if wrong is not None:
                return Problem(
                    "record-differs",
                    f"at {seq}, {wrong}",
                    "list all differences with `tocsin cdc verify`, then run `tocsin cdc rebuild`",
                    seq,
                )
        return None

    async def _difference(self, seq: int) -> str | None:
        records = await self._reader.read_range(seq - 1, 1)
        source = f"tocsin/{self._settings.namespace}"
        try:
            found = await self._js.get_msg(self._settings.stream, seq=seq)
        except NotFoundError:
            return None  # expired since, or one of the holes
        stored = Stored(seq, found.subject or "", found.data or b"")
        if not records:
            # Nothing to compare with where the hole was accepted, or the partition was dropped since.
            is_accepted = await self._has(seq)
            return None if is_accepted else difference(None, stored)
        expected = message_of(records[0], self._settings.subjects, source, self._bus.max_payload)
        return difference(expected, stored)
