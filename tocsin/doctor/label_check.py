"""The check of the doctor about series whose labels alternate: several sources share one series.

Guarantee: never red, and no line if no series does. The values of the sources follow each other in the
series, so its alarms open and resolve without a change in the world. Labels are data unless a
datapoint_type names them in `dimensions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tocsin.core.db import Connection, fetch_all
from tocsin.doctor.checks import Finding

_WITHIN = timedelta(hours=1)
_DATAPOINTS = 20_000
_LEAST = 6
_SHOWN = 3
_MOST = 100


class AlternatingSeries(NamedTuple):
    owner: str
    key: str
    times: int
    labels: Mapping[str, Any] | None
    others: Mapping[str, Any] | None
    """Two of its labels that followed each other."""

    @property
    def differing(self) -> list[str]:
        """The names of the labels that alternate."""
        one, other = self.labels or {}, self.others or {}
        return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


async def check_labels(connection: Connection, now: datetime) -> list[Finding]:
    parameters = {"since": now - _WITHIN, "datapoints": _DATAPOINTS, "least": _LEAST, "limit": _MOST}
    rows = await fetch_all(connection, "rules.alarms/list_alternating_series", parameters)
    return label_findings([AlternatingSeries(*row) for row in rows])


def label_findings(series: Sequence[AlternatingSeries]) -> list[Finding]:
    """The series that alternate most often come first."""
    if not series:
        return []
    shown = ", ".join(f"{one.key} of {one.owner} ({', '.join(one.differing)})" for one in series[:_SHOWN])
    count = f"{_MOST} or more" if len(series) >= _MOST else str(len(series))
    text = f"the labels of {count} series alternate: {shown}{', ...' if len(series) > _SHOWN else ''}"
    names = sorted({name for one in series for name in one.differing})[:_SHOWN]
    remedy = (
        f"if they are different sources, write `dimensions: [{', '.join(names)}]` in the datapoint_type, "
        "or give each source its own owner or key"
    )
    return [Finding("info", "labels", text, remedy)]
