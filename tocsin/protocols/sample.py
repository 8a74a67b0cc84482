"""A value of a foreign metric, before it has an owner and a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from schemas.wire.datapoint import Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MICROSECONDS = (datetime(9998, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
MAX_SAMPLES = 10_000
"""Values of one request."""


class Sample(NamedTuple):
    metric: str
    labels: dict[str, str]
    value: Value
    ts: datetime | None = None
    """By default the arrival."""


@dataclass
class ReadSamples:
    """The content of a request. `skipped` values are valid and have no meaning in Tocsin, such as a
    value that is not a number; they are no errors."""

    samples: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    skipped: int = 0


def instant_of(microseconds: int) -> datetime:
    """The instant of a number of microseconds since 1970. `ValueError` if no year has it."""
    if not 0 <= microseconds <= _MAX_MICROSECONDS:
        raise ValueError(f"the timestamp {microseconds} µs is not plausible: send one since 1970")
    return _EPOCH + timedelta(microseconds=microseconds)
