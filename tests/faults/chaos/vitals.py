"""The state of an installation: how late fires, the stream, the lanes, the consumer and the runs are.

Recovery is the time from the end of a fault until every aspect is normal again and stays so for a
second. The limits are those of a busy machine, far above the usual values (tens of milliseconds).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import psycopg
from nats.errors import Error as NatsError

from tests.faults.chaos.installation import Installation

LIMITS = {"fires_s": 1.0, "stream": 40, "lanes_s": 3.0, "consumer": 60, "runs": 0}
_STAYS_S = 1.0
_OUTAGE = (psycopg.Error, NatsError, OSError, TimeoutError)
_STATE = """
    select extract(epoch from tocsin.instant() - (
               select max(ts) from tocsin.event where schedule = 'pulse' and type = 'schedule-fired')),
           (select coalesce(max(last_seq), 0) from tocsin.log_commit),
           (select max(extract(epoch from tocsin.instant() - watermark)) from tocsin.lane_partition),
           (select count(*) from tocsin.action where state in ('gathering', 'queued', 'running')
            and started_at < tocsin.instant() - interval '5 s'),
           (select count(distinct lane) from tocsin.lane_partition where holder is not null)
"""
_LANES = 2


@dataclass(frozen=True)
class Recovery:
    seconds: float
    """-1 if it never recovered."""
    aspects: dict[str, float]
    """The last time after the fault at which each aspect was not normal, in seconds."""


def read_vitals(chaos: Installation) -> dict[str, float] | None:
    """The value of each aspect; None while a server does not answer."""
    try:
        # The head last: otherwise a stream that is merely faster than these reads seems to be ahead.
        published = chaos.last_sequence()
        ((consumed,),) = chaos.read_service("select coalesce(max(seq), 0) from effect")
        ((fires_s, head, lanes_s, runs, lanes),) = chaos.read(_STATE)
    except _OUTAGE:
        return None
    return {
        "fires_s": _or_infinity(fires_s),
        "stream": head - published,
        "lanes_s": _or_infinity(lanes_s) if lanes == _LANES else float("inf"),
        "consumer": head - consumed,
        "runs": runs,
    }


def _or_infinity(seconds: Any) -> float:
    return float("inf") if seconds is None else float(seconds)


def late(vitals: dict[str, float] | None) -> set[str]:
    """The aspects that are not normal. A stream that is ahead of the log is not normal either."""
    if vitals is None:
        return set(LIMITS)
    found = {aspect for aspect, value in vitals.items() if value > LIMITS[aspect]}
    return found | ({"stream"} if vitals["stream"] < 0 else set())


def wait_until_normal(chaos: Installation, within_s: float) -> Recovery:
    began_s = time.monotonic()
    last_late_s = dict.fromkeys(LIMITS, 0.0)
    state: dict[str, float] | None = None

    def is_normal() -> bool:
        nonlocal state
        state = read_vitals(chaos)
        passed_s = time.monotonic() - began_s
        for aspect in late(state):
            last_late_s[aspect] = passed_s
        return passed_s - max(last_late_s.values()) >= _STAYS_S

    try:
        chaos.until(is_normal, "the installation is normal again", within_s)
    except AssertionError:
        return Recovery(-1.0, {aspect: round(value, 2) for aspect, value in (state or {}).items()})
    return Recovery(
        round(max(last_late_s.values()), 2), {aspect: round(s, 2) for aspect, s in last_late_s.items()}
    )
