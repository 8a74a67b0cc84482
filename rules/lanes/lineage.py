"""Lineage: which action_rules led to an event, so that nothing starts itself for ever.

Guarantee: an event that an action emits carries the rules behind it, and so does a message that it publishes (header
`Tocsin-Lineage`); whoever answers such a message with an event passes the header on. A rule that is among them is not
started again, and neither is anything at a depth of `MAX_DEPTH`; `suppression` says so in a sentence.

Why not the correlation alone: an alarm that opens and resolves is one correlation, and a rule may well react to both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from psycopg.types.json import Jsonb

from schemas.wire.subjects import text_of, token
from tocsin.core.db import Connection, statement

MAX_DEPTH = 16
_LONGEST_TEXT = 8_192
_TOKEN = re.compile(r"(?:[A-Za-z0-9_-]|%[0-7][0-9A-F])+")


def lineage_text(lineage: Sequence[str]) -> str:
    """As it travels in the header `Tocsin-Lineage`."""
    return ",".join(token(rule) for rule in lineage)


def lineage_of_text(text: str) -> tuple[str, ...]:
    """From the header of somebody's message: what is unreadable or too long is no lineage of ours."""
    tokens = [one for one in text[:_LONGEST_TEXT].split(",") if one]
    return tuple(text_of(one) for one in tokens[:MAX_DEPTH] if _TOKEN.fullmatch(one))


def suppression(rule: str, lineage: Sequence[str]) -> str | None:
    """Why a rule must not be started by an event of this lineage; None if it may."""
    if rule in lineage:
        return f"suppressed: it would start itself again, {' -> '.join((*lineage, rule))}"
    if len(lineage) >= MAX_DEPTH:
        return (
            f"suppressed: {len(lineage)} rules led to this event, at most {MAX_DEPTH} may follow each other"
        )
    return None


async def read_lineages(connection: Connection, event_ids: Iterable[UUID]) -> Mapping[UUID, tuple[str, ...]]:
    """Only of events that have one."""
    rows = await connection.execute(statement("rules.lanes/read_lineages"), {"ids": list(event_ids)})
    return {id: tuple(lineage) for id, lineage in await rows.fetchall()}


async def keep_lineages(connection: Connection, lineages: Mapping[UUID, Sequence[str]]) -> None:
    """In the transaction that appends the events."""
    if lineages:
        columns = {"ids": list(lineages), "lineages": [Jsonb(list(one)) for one in lineages.values()]}
        await connection.execute(statement("rules.lanes/keep_lineage"), columns)
