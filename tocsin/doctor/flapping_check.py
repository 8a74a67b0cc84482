"""The check of the doctor about alarms that open and resolve, or change their level, again and again.

Guarantee: never red, and no line if no alarm flaps. Each message about such an alarm is true, but no
one can act on it: the rule needs a margin, or the values of several sources alternate in one series.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from tocsin.core.db import Connection, fetch_all
from tocsin.doctor.checks import Finding

_WITHIN = timedelta(hours=1)
_LEAST = 6
_SHOWN = 3
_MOST = 100
_REMEDY = (
    "add `clear`, `for` or `keep_firing_for` to the rule; if sources with different labels share the series, "
    "name the label in `dimensions` of its datapoint_type"
)


class FlappingAlarm(NamedTuple):
    rule: str
    owner: str
    instance: str
    times: int


async def check_flapping(connection: Connection, now: datetime) -> list[Finding]:
    parameters = {"since": now - _WITHIN, "least": _LEAST, "limit": _MOST}
    rows = await fetch_all(connection, "rules.alarms/list_flapping_alarms", parameters)
    return flapping_findings([FlappingAlarm(*row) for row in rows])


def flapping_findings(alarms: Sequence[FlappingAlarm]) -> list[Finding]:
    """The most frequent alarms come first."""
    if not alarms:
        return []
    count = f"{_MOST} or more" if len(alarms) >= _MOST else str(len(alarms))
    shown = ", ".join(_text(alarm) for alarm in alarms[:_SHOWN])
    more = ", ..." if len(alarms) > _SHOWN else ""
    text = f"{count} ended or changed at least {_LEAST} times within an hour: {shown}{more}"
    return [Finding("info", "flapping alarms", text, _REMEDY)]


def _text(alarm: FlappingAlarm) -> str:
    about = " ".join(part for part in (alarm.owner, alarm.instance) if part)
    return f"{alarm.rule} ({about}) {alarm.times} times" if about else f"{alarm.rule} {alarm.times} times"
