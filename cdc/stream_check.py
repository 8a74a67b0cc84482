"""The stream check: compares the stream with the log.

Guarantee: every `cdc_check_s` the leader checks how far the stream lags behind the log, in records
and in seconds, that the stream has no holes, and that a sample of its messages equals the records
of the log: half of it recent, half from anywhere. The result is in `cdc_report`. A difference stays
reported until that very message is right or is no longer kept: a sample without differences does
not end it.

Why a sample: a whole comparison reads everything twice; `tocsin cdc verify` does that. What stops
the publisher (a stream that is ahead, a hole of the log) is reported by the publisher; the check
only notices that it is fixed.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from cdc.compare import StoredMessage, difference, is_same_record
from cdc.errors import LogHole, StreamAhead
from cdc.log_reader import LogReader, is_erased
from cdc.messages import message_of
from cdc.report import read_report, report_problem
from cdc.stream import find_stream
from tocsin.core.db import Connection, statement
from tocsin.core.settings import Settings

_TIMEOUT_S = 3.0
_SAMPLE = 16
_RECENT = 10_000
_VERIFY = "list all differences with `tocsin cdc verify`"
# Another body of the same record can be written again. Another record cannot: consumers have read it.
_REBUILD = f"{_VERIFY}, then run `tocsin cdc rebuild`"
_ADOPT = f"{_VERIFY}, then accept the loss with `tocsin cdc adopt`"


@dataclass(frozen=True)
class StreamProblem:
    kind: str
    detail: str
    remedy: str
    seq: int | None = None


class StreamCheck:
    def __init__(
        self,
        settings: Settings,
        connection: Connection,
        bus: Client,
        holder: str,
        random_source: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._reader = LogReader(connection)
        self._bus = bus
        self._js = bus.jetstream(timeout=_TIMEOUT_S)
        self._holder = holder
        self._random = random_source or random.Random()  # noqa: S311 a sample, not a secret

    async def run(self) -> None:
        while True:
            await self.run_once()
            await asyncio.sleep(self._settings.cdc_check_s)

    async def run_once(self) -> StreamProblem | None:
        info = await find_stream(self._js, self._settings)
        if info is None:  # lost a moment ago: the publisher creates it again
            return None
        first, last = int(info.state.first_seq), int(info.state.last_seq)
        # The head is read after the stream: a commit in between must not look like a stream that is
        # ahead.
        head = await self._reader.head()
        # Expired messages cannot look like a hole: expiry removes from the beginning only.
        holes = max(0, last - first + 1 - int(info.state.messages)) if info.state.messages else 0
        reported = (await read_report(self._connection)).seq
        sample = self._sample(max(first, await self._reader.horizon()), min(last, head), reported)
        problem = await self._check_sequences(head, last, holes) or await self._compare(sample)
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

    def _sample(self, first: int, last: int, reported: int | None) -> list[int]:
        """Choose the sequences to compare.

        A reported difference is checked again as long as it is kept.
        """
        if last < first:
            return []
        recent = range(max(first, last - _RECENT + 1), last + 1)
        anywhere = range(first, last + 1)
        chosen = {reported} if reported is not None and reported in anywhere else set()
        for part in (recent, anywhere):
            chosen.update(self._random.sample(part, min(_SAMPLE // 2, len(part))))
        return sorted(chosen)

    async def _check_sequences(self, head: int, last: int, holes: int) -> StreamProblem | None:
        stream = self._settings.stream
        if last > head:
            return StreamProblem(
                StreamAhead.kind,
                f"the stream {stream!r} is at {last}, the log only at {head}",
                "see `tocsin cdc adopt`",
            )
        if holes:
            return StreamProblem(
                "stream-hole",
                f"the stream {stream!r} lacks {holes} messages between its first and its last",
                "rebuild it with `tocsin cdc rebuild`",
            )
        if last < head and not await self._is_known(last + 1):
            return StreamProblem(
                LogHole.kind,
                f"record {last + 1} is missing from the log",
                "see `tocsin cdc adopt`",
                last + 1,
            )
        return None

    async def _is_known(self, seq: int) -> bool:
        """Whether the log knows `seq`: as a record, as an accepted gap, or as dropped on purpose."""
        return (
            await self._reader.id_at(seq) is not None
            or bool(await self._reader.read_gap(seq - 1, 1))
            or await self._reader.horizon() > seq
        )

    async def _compare(self, sample: list[int]) -> StreamProblem | None:
        for seq in sample:
            problem = await self._difference(seq)
            if problem is not None:
                return problem
        return None

    async def _difference(self, seq: int) -> StreamProblem | None:
        records = await self._reader.read_range(seq - 1, 1)
        try:
            message = await self._js.get_msg(self._settings.stream, seq=seq)
        except NotFoundError:
            return None  # expired since, or one of the holes
        stored = StoredMessage(seq, message.subject or "", message.data or b"")
        if not records:
            # An accepted hole, or a partition that was dropped since, has nothing to compare with.
            return None if await self._is_known(seq) else _differs(difference(None, stored), stored, _ADOPT)
        expected = message_of(
            records[0], self._settings.subjects, self._settings.source, self._bus.max_payload
        )
        remedy = _REBUILD if is_same_record(expected.body, stored.body) else _ADOPT
        erased = is_erased(records[0], await self._reader.erased_owners())
        return _differs(difference(expected, stored, is_erased=erased), stored, remedy)


def _differs(difference: str | None, stored: StoredMessage, remedy: str) -> StreamProblem | None:
    if difference is None:
        return None
    return StreamProblem("record-differs", f"at {stored.seq}, {difference}", remedy, stored.seq)
