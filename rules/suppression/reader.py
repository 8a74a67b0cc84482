"""Reads what can suppress alarms: silences in force, inhibits, and open alarms that can inhibit.

Guarantee: at most one statement for the silences, one for the rules, and one for each inhibit whose
target matches. The open alarms are narrowed by the literals of `source` and the fields of `equal`,
so a source that names its rules reads these only.

The rules are the newest: a document that was applied a moment ago counts for the next step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from psycopg.types.json import Jsonb

from rules.documents.rule_book import RuleBook, RuleSet
from rules.language.cel import AlarmMatcher
from rules.language.cel.alarms import count_evaluations
from rules.suppression.silence_store import read_silences
from rules.suppression.suppression import (
    Inhibit,
    Inhibition,
    MatchedAlarm,
    Silence,
    SilencesInForce,
    Suppression,
    matched_alarm,
    suppressed_by,
)
from schemas.documents import InhibitDocument
from tocsin.core.db import Connection, fetch_dicts
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()
MAX_LISTED = 100_000
_FEW = 8
# Alarms times matchers that are evaluated before other tasks run: about 20 ms.
_PAIRS_AT_ONCE = 500
# An evaluation costs as much as this many look-ups of a kept result.
_LOOK_UPS = 20
# Behind the seq of every apply.
_NEWEST = 2**62


class Suppressions:
    """Reads suppressions. It keeps the compiled inhibits until rules are applied."""

    def __init__(self) -> None:
        self._book = RuleBook(compile_inhibits, InhibitDocument)

    async def of(
        self, connection: Connection, alarms: Sequence[MatchedAlarm], now: datetime
    ) -> dict[UUID, Suppression]:
        """The suppressions of open alarms, by their ids; those that are notified are left out."""
        silences = await read_silences(connection)
        inhibits = await self.inhibits(connection)
        sources = await list_inhibiting(connection, inhibits, alarms)
        return await _suppressed(alarms, silences, inhibits, sources, now)

    async def of_open(
        self,
        connection: Connection,
        now: datetime,
        limit: int = MAX_LISTED,
        max_evaluations: int | None = None,
    ) -> dict[UUID, Suppression]:
        """The suppressions of all open alarms, of at most `limit`, with few statements.

        After `max_evaluations` of matchers, or twenty times as many look-ups of kept results, the
        others are left out.
        """
        silences = await read_silences(connection)
        inhibits = await self.inhibits(connection)
        alarms = await list_open(connection, limit=limit)
        return await _suppressed(alarms, silences, inhibits, alarms, now, max_evaluations)

    async def inhibits(self, connection: Connection) -> tuple[Inhibit, ...]:
        """The enabled inhibits of the newest rules."""
        await self._book.refresh(connection, _NEWEST)
        return self._book.at(_NEWEST)


async def _suppressed(
    alarms: Sequence[MatchedAlarm],
    silences: Sequence[Silence],
    inhibits: Sequence[Inhibit],
    sources: Sequence[MatchedAlarm],
    now: datetime,
    max_evaluations: int | None = None,
) -> dict[UUID, Suppression]:
    """Evaluates in chunks: the other tasks of the process run in between."""
    evaluated = count_evaluations()
    inhibition, in_force = Inhibition(inhibits, ()), SilencesInForce(silences, now)
    pairs = in_force.width + len(inhibits) + 1
    chunk = max(1, _PAIRS_AT_ONCE // pairs)
    if inhibits:
        ordered = sorted(sources, key=lambda alarm: alarm.id)
        for first in range(0, len(ordered), chunk):
            inhibition.add(ordered[first : first + chunk])
            await asyncio.sleep(0)
    found = {}
    for first in range(0, len(alarms), chunk):
        for alarm in alarms[first : first + chunk]:
            suppression = suppressed_by(alarm, in_force, inhibits, inhibition, now)
            if suppression is not None:
                found[alarm.id] = suppression
        await asyncio.sleep(0)
        if max_evaluations is not None:
            looked_up = (first + chunk) * pairs // _LOOK_UPS
            if max(count_evaluations() - evaluated, looked_up) >= max_evaluations:
                break
    return found


def compile_inhibits(documents: RuleSet, _: tuple[Inhibit, ...] | None = None) -> tuple[Inhibit, ...]:
    inhibits = []
    for document in documents.of(InhibitDocument).values():
        if document.enabled:
            try:
                inhibits.append(Inhibit.of(document))
            except InvalidInput as error:
                _log.error("inhibit cannot be used", name=document.name, error=error)
    return tuple(inhibits)


async def list_open(
    connection: Connection, matcher: AlarmMatcher | None = None, *, limit: int = MAX_LISTED
) -> list[MatchedAlarm]:
    """The open alarms, narrowed by the literals of a matcher, which is evaluated as well."""
    rules = None if matcher is None else matcher.only("rule")
    owners = None if matcher is None else matcher.only("owner")
    filters = {
        "rules": None if rules is None else sorted(rules),
        "owners": None if owners is None else sorted(owners),
        "limit": limit,
    }
    rows = await fetch_dicts(connection, "rules.suppression/list_matched_alarms", filters)
    alarms = [matched_alarm(row) for row in rows]
    return alarms if matcher is None else [alarm for alarm in alarms if matcher.matches(alarm.fields)]


async def list_inhibiting(
    connection: Connection, inhibits: Iterable[Inhibit], targets: Sequence[MatchedAlarm]
) -> list[MatchedAlarm]:
    """The open alarms that can inhibit one of some alarms."""
    found: dict[UUID, MatchedAlarm] = {}
    for inhibit in inhibits:
        matched = [target for target in targets if inhibit.target.matches(target.fields)]
        # The alarms of a large group are not asked for one by one.
        several = [_sources_of_any(inhibit)] if len(matched) > _FEW else None
        for filters in several or [_filters(inhibit, target) for target in matched]:
            if filters is None:
                continue
            rows = await fetch_dicts(connection, "rules.suppression/list_inhibiting_alarms", filters)
            found |= {row["id"]: matched_alarm(row) for row in rows}
    return list(found.values())


def _sources_of_any(inhibit: Inhibit) -> Mapping[str, Any] | None:
    rules = inhibit.source.only("rule")
    return {"rules": None if rules is None else sorted(rules), "owner": None, "labels": Jsonb({})}


def _filters(inhibit: Inhibit, target: MatchedAlarm) -> Mapping[str, Any] | None:
    """The filters for sources of one target; None if nothing can inhibit it."""
    values = inhibit.equal_values(target)
    if values is None:
        return None
    equal = dict(zip(inhibit.equal, values, strict=True))
    rules = inhibit.source.only("rule")
    if "rule" in equal:
        rules = frozenset([target.rule]) if rules is None else rules & {target.rule}
    labels = {
        name.removeprefix("labels."): value for name, value in equal.items() if name.startswith("labels.")
    }
    return {
        "rules": None if rules is None else sorted(rules),
        "owner": equal.get("owner"),
        "labels": Jsonb(labels),
    }
