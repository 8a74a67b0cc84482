"""Reads runs for operators: many by filters, one with its attempts, and statistics. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from rules.runbook import Program, compile_runbook
from rules.runbook.program import read_document
from rules.runbook.states import ACTIVE_STEP
from tocsin.core.db import Connection, fetch_dicts
from tocsin.core.errors import InvalidInput
from tocsin.core.id_prefix import IdPrefix

Row = dict[str, Any]


@dataclass(frozen=True)
class Attempt:
    step: int
    name: str
    kind: str
    attempt: int
    state: str
    """Its last state."""
    due_at: datetime
    changed_at: datetime
    result: Mapping[str, Any]

    @property
    def took(self) -> timedelta | None:
        """Time from due to its end; None while it is active."""
        return None if self.state in ACTIVE_STEP else self.changed_at - self.due_at

    @property
    def error(self) -> str:
        return str(self.result.get("error") or self.result.get("reason") or "")


@dataclass
class Statistics:
    """Numbers of runs by state, and the average duration of completed runs: of all rules, and of
    each."""

    states: dict[str, int] = field(default_factory=dict)
    average_s: float | None = None
    rules: dict[str, Statistics] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.states.values())


async def find_run(connection: Connection, text: str) -> Row:
    """The run with an id, or with an id that begins with `text`."""
    prefix = IdPrefix(text, "action", "tocsin actions")
    return prefix.only(await fetch_dicts(connection, "rules.actions/find_actions", prefix.bounds()))


async def list_runs(
    connection: Connection,
    *,
    states: Sequence[str] | None = None,
    name: str | None = None,
    rule: str | None = None,
    owner: str | None = None,
    since: datetime | None = None,
    limit: int = 50,
) -> list[Row]:
    """Runs that meet the filters, newest first."""
    filters = {
        "states": None if states is None else list(states),
        "name": name,
        "rule": rule,
        "owner": owner,
        "since": since,
        "limit": limit,
    }
    return await fetch_dicts(connection, "rules.actions/list_actions", filters)


async def read_attempts(connection: Connection, run: Row) -> list[Attempt]:
    rows = await fetch_dicts(connection, "rules.actions/list_steps", {"id": run["id"]})
    return attempts_of(rows, run["document"])


async def read_statistics(
    connection: Connection, since: datetime | None = None, owners: Sequence[str] | None = None
) -> Statistics:
    """Of all runs; with `owners`, only of these patterns."""
    filters = {"since": since, "owners": None if owners is None else list(owners)}
    rows = await fetch_dicts(connection, "rules.actions/count_actions", filters)
    return statistics_of(rows)


async def read_last_results(
    connection: Connection, schedules: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Row]:
    """The newest run of the own action of each schedule, by owner and name. Schedules without one
    are left out."""
    pairs = list(schedules)
    columns = {"owners": [owner for owner, _ in pairs], "names": [name for _, name in pairs]}
    rows = await fetch_dicts(connection, "rules.actions/list_last_results", columns)
    return {(row["owner"], row["schedule"]): row for row in rows}


def attempts_of(rows: Sequence[Row], document: Mapping[str, Any]) -> list[Attempt]:
    """One for each (step, attempt), in the order in which they began."""
    program = _program(document)
    attempts: dict[tuple[int, int], Attempt] = {}
    for row in rows:
        step, attempt = row["step"], row["attempt"]
        name, kind = _name_and_kind(program, step)
        earlier = attempts.get((step, attempt))
        attempts[step, attempt] = Attempt(
            step,
            name,
            kind,
            attempt,
            row["state"],
            row["recorded_at"] if earlier is None else earlier.due_at,
            row["recorded_at"],
            row["result"],
        )
    return list(attempts.values())


def step_names(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the steps, by number. Empty for a document that this version cannot read."""
    program = _program(document)
    return () if program is None else tuple(node.name for node in program.nodes)


def statistics_of(rows: Sequence[Row]) -> Statistics:
    """Statistics from counts by rule and state. The average weighs each run the same."""
    total = Statistics()
    durations: dict[int, tuple[float, int]] = {}
    for row in rows:
        rule = total.rules.setdefault(row["rule"], Statistics())
        for part in (total, rule):
            part.states[row["state"]] = part.states.get(row["state"], 0) + row["count"]
            if row["average_s"] is not None:
                seconds, count = durations.get(id(part), (0.0, 0))
                durations[id(part)] = seconds + float(row["average_s"]) * row["count"], count + row["count"]
    for part in (total, *total.rules.values()):
        if id(part) in durations:
            seconds, count = durations[id(part)]
            part.average_s = seconds / count
    return total


def _program(document: Mapping[str, Any]) -> Program | None:
    """None for a document that this version cannot read: its history is shown without names."""
    try:
        return compile_runbook(read_document(document))
    except (ValidationError, InvalidInput):
        return None


def _name_and_kind(program: Program | None, step: int) -> tuple[str, str]:
    if program is None or step >= len(program.nodes):
        return str(step), ""
    node = program.nodes[step]
    return node.name, node.kind
