"""The check of the doctor about silences: how many are in force, and which are worth a look.

Guarantee: never red. A silence is a decision of an operator, and a forgotten one is visible here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from rules.suppression import MatchedAlarm, Silence
from rules.suppression.reader import list_open
from rules.suppression.silence_store import read_silences
from tocsin.core.db import Connection
from tocsin.doctor.checks import Finding

_LONG = timedelta(days=7)
_SHOWN = 5


async def check_silences(connection: Connection, now: datetime) -> Finding:
    silences = await read_silences(connection)
    return silence_finding(silences, await list_open(connection) if silences else [], now)


def silence_finding(silences: Sequence[Silence], alarms: Sequence[MatchedAlarm], now: datetime) -> Finding:
    if not silences:
        return Finding("ok", "silences", "none in force")
    muted = {silence.id: {alarm.id for alarm in alarms if silence.mutes(alarm)} for silence in silences}
    text = f"{len(silences)} in force, {len(set().union(*muted.values()))} open alarms match"
    # A window of a maintenance is planned, whether it matches or not, and has its end.
    added = [silence for silence in silences if silence.source == "operator"]
    unused = [silence for silence in added if not muted[silence.id]]
    long = [silence for silence in added if silence.ends_at - now > _LONG]
    if unused:
        text += f"; {len(unused)} match nothing ({_ids(unused)})"
    if long:
        text += f"; {len(long)} last for more than {_LONG.days} days ({_ids(long)})"
    return Finding("info" if unused or long else "ok", "silences", text)


def _ids(silences: Sequence[Silence]) -> str:
    more = ", ..." if len(silences) > _SHOWN else ""
    return ", ".join(str(silence.id)[:8] for silence in silences[:_SHOWN]) + more
