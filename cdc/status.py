"""The status of the record log and its stream, for `tocsin cdc status`.

Reads only. The stream is read before the head, so that a commit between the two never looks like a
stream that is ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

from nats.aio.client import Client

from cdc.log_reader import Gap, LogReader
from cdc.report import PublisherReport, read_report
from cdc.stream import find_stream
from clock.lease import current_holder
from tocsin.core.settings import Settings

_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class LogStatus:
    stream: str
    first_seq: int | None
    """The first sequence of the stream; None if there is no stream."""
    last_seq: int | None
    messages: int
    horizon: int
    """The first seq that the log still has."""
    head: int
    lag: int
    lag_s: float
    leader: str | None
    tombstones: dict[str, int]
    """How many tombstones of each kind the stream has."""
    gaps: list[Gap]
    report: PublisherReport


async def read_status(bus: Client, settings: Settings, reader: LogReader) -> LogStatus:
    js = bus.jetstream(timeout=_TIMEOUT_S)
    prefix = f"{settings.subjects}.tombstone."
    info = await find_stream(js, settings, subjects=f"{prefix}>")
    head = await reader.head()
    last = int(info.state.last_seq) if info else None
    return LogStatus(
        stream=settings.stream,
        first_seq=int(info.state.first_seq) if info else None,
        last_seq=last,
        messages=int(info.state.messages) if info else 0,
        horizon=await reader.horizon(),
        head=head,
        lag=head - (last or 0),
        lag_s=await reader.lag_s(last or 0),
        leader=await current_holder(bus, settings, "cdc"),
        tombstones={
            subject.removeprefix(prefix): count
            for subject, count in ((info.state.subjects if info else None) or {}).items()
        },
        gaps=await reader.gaps(),
        report=await read_report(reader.connection),
    )
