"""Actions as people read them: lists, one with its attempts, and statistics. Reads only.

Guarantee: an id may be shortened as long as it names one action. `attempts_of` is pure: from the rows of a step's
history to what each attempt came to, how long it took, and what it said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row
from pydantic import ValidationError

from rules.runbook import Program, compile_runbook
from schemas.documents.action import ActionDocument
from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput, Refused

Row = dict[str, Any]
UNDER_WAY = ("gathering", "queued", "running")
DEAD = ("failed", "timed_out")
ENDED = ("completed", *DEAD, "cancelled", "skipped")
STATES = (*UNDER_WAY, *ENDED)
_PREFIX = re.compile(r"[0-9a-f]{4,32}")


@dataclass(frozen=True)
class Attempt:
    step: int
    name: str
    kind: str
    attempt: int
    state: str
    """The last state that it reached."""
    due_at: datetime
    changed_at: datetime
    result: Mapping[str, Any]

    @property
    def took(self) -> timedelta | None:
        """From when it was due to how it ended; None while it has not."""
        return None if self.state in ("due", "waiting") else self.changed_at - self.due_at

    @property
    def error(self) -> str:
        return str(self.result.get("error") or self.result.get("reason") or "")


@dataclass
class Statistics:
    """Counts by state, and the average duration of what was completed, of all actions and of each rule."""

    states: dict[str, int] = field(default_factory=dict)
    average_s: float | None = None
    rules: dict[str, Statistics] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.states.values())


async def find_action(connection: Connection, written: str) -> Row:
    """`written` is an action's id, or its beginning."""
    prefix = written.lower().replace("-", "")
    if not _PREFIX.fullmatch(prefix):
        raise InvalidInput(
            f"{written!r} is not the id of an action",
            remedy="give four letters of it or more, as `tocsin actions` shows",
        )
    bounds = {"first": UUID(prefix.ljust(32, "0")), "last": UUID(prefix.ljust(32, "f"))}
    found = await _rows(connection, statement("rules.actions/find_actions"), bounds)
    if not found:
        raise Refused(f"there is no action {written!r}", remedy="`tocsin actions` lists them")
    if len(found) > 1:
        raise InvalidInput(f"{written!r} begins the ids of several actions", remedy="give more of it")
    return found[0]


async def list_actions(
    connection: Connection,
    *,
    states: Sequence[str] | None = None,
    name: str | None = None,
    rule: str | None = None,
    owner: str | None = None,
    since: datetime | None = None,
    limit: int = 50,
) -> list[Row]:
    """The newest first."""
    wanted = {
        "states": None if states is None else list(states),
        "name": name,
        "rule": rule,
        "owner": owner,
        "since": since,
        "limit": limit,
    }
    return await _rows(connection, statement("rules.actions/list_actions"), wanted)


async def attempts(connection: Connection, action: Row) -> list[Attempt]:
    rows = await _rows(connection, statement("rules.actions/list_steps"), {"id": action["id"]})
    return attempts_of(rows, action["document"])


async def statistics(connection: Connection, since: datetime | None = None) -> Statistics:
    rows = await _rows(connection, statement("rules.actions/count_actions"), {"since": since})
    return statistics_of(rows)


async def last_results(
    connection: Connection, schedules: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Row]:
    """The newest action that each schedule, given by owner and name, carried itself; not of those that had none."""
    pairs = list(schedules)
    columns = {"owners": [owner for owner, _ in pairs], "names": [name for _, name in pairs]}
    rows = await _rows(connection, statement("rules.actions/list_last_results"), columns)
    return {(row["owner"], row["schedule"]): row for row in rows}


def attempts_of(rows: Sequence[Row], document: Mapping[str, Any]) -> list[Attempt]:
    """One for each (step, attempt), in the order in which they began."""
    program = _program(document)
    found: dict[tuple[int, int], Attempt] = {}
    for row in rows:
        step, attempt = row["step"], row["attempt"]
        name, kind = _named(program, step)
        before = found.get((step, attempt))
        found[step, attempt] = Attempt(
            step,
            name,
            kind,
            attempt,
            row["state"],
            row["recorded_at"] if before is None else before.due_at,
            row["recorded_at"],
            row["result"],
        )
    return list(found.values())


def step_names(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Of each step, by its number."""
    program = _program(document)
    return () if program is None else tuple(node.name for node in program.nodes)


def statistics_of(rows: Sequence[Row]) -> Statistics:
    """Averages weigh each action the same."""
    whole = Statistics()
    durations: dict[int, tuple[float, int]] = {}
    for row in rows:
        rule = whole.rules.setdefault(row["rule"], Statistics())
        for one in (whole, rule):
            one.states[row["state"]] = one.states.get(row["state"], 0) + row["count"]
            if row["average_s"] is not None:
                seconds, count = durations.get(id(one), (0.0, 0))
                durations[id(one)] = seconds + float(row["average_s"]) * row["count"], count + row["count"]
    for one in (whole, *whole.rules.values()):
        if id(one) in durations:
            seconds, count = durations[id(one)]
            one.average_s = seconds / count
    return whole


def _program(document: Mapping[str, Any]) -> Program | None:
    """None for a document that this version cannot read: its history can be shown all the same."""
    try:
        return compile_runbook(ActionDocument.model_validate(document))
    except (ValidationError, InvalidInput):
        return None


def _named(program: Program | None, step: int) -> tuple[str, str]:
    if program is None or step >= len(program.nodes):
        return str(step), ""
    node = program.nodes[step]
    return node.name, node.kind


async def _rows(connection: Connection, sql: bytes, parameters: Mapping[str, Any]) -> list[Row]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(sql, parameters)
        return await cursor.fetchall()
