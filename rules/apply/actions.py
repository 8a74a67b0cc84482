"""Cancels or keeps runs when their `action_rule` or `action` document changes.

Guarantee: a run that has started finishes with the document it was started with, even if the apply
changes or removes that document. A run that has not started (it gathers a group, or is queued) is
cancelled if its action_rule is removed or disabled, with the reason in its history. The apply
deletes the timer of such a run first, so that either the clock starts the run or the apply cancels
it, never both.

An event that was committed before the apply and is dispatched after it is still matched with the
rules of its seq. It may start a run of a rule that the apply removed. That run has its own copy of
the document, and finishes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rules.apply.plan import DocumentChange, DocumentKey
from rules.lanes.batch import Writes
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.records import NewRecords, NewStep

_UNSTARTED = ("gathering", "queued")


class RunImpact(NamedTuple):
    """The number of runs that are cancelled, and of those that finish with their old document."""

    cancelled: int
    finishing: int


def ended_rules(changes: Iterable[DocumentChange]) -> dict[str, str]:
    """The action_rules that start no more runs: name to reason."""
    return {
        change.name: "the rule was removed" if change.after is None else "the rule was disabled"
        for change in changes
        if change.kind == "action_rule" and (change.after is None or not change.after["enabled"])
    }


class CancelUnstarted(Writes):
    """Cancels the runs of `ended_rules` that have not started."""

    def __init__(self, ended: Mapping[str, str]) -> None:
        self._columns = {"rules": list(ended), "reasons": list(ended.values())}
        self.steps: list[NewStep] = []

    async def write_timers(self, connection: Connection) -> None:
        if self._columns["rules"]:
            await connection.execute(statement("rules.apply/disarm_unstarted_runs"), self._columns)

    async def write_entities(self, connection: Connection) -> None:
        if not self._columns["rules"]:
            return
        rows = await fetch_all(connection, "rules.apply/cancel_unstarted_runs", self._columns)
        self.steps = [
            NewStep(
                action_id=action_id,
                name=name,
                owner=owner,
                step=0,
                attempt=1,
                state="cancelled",
                correlation_id=correlation_id,
                source_event_id=event_id,
                result={"reason": reason},
            )
            for action_id, name, owner, correlation_id, event_id, reason in rows
        ]

    def records_to_append(self) -> NewRecords:
        return NewRecords(steps=self.steps)


async def count_active_runs(
    connection: Connection, changes: Sequence[DocumentChange]
) -> dict[DocumentKey, RunImpact]:
    """The impact on runs of each action_rule and action that changes and has active runs."""
    rows = await fetch_all(
        connection,
        "rules.apply/count_active_runs",
        {
            "rules": [change.name for change in changes if change.kind == "action_rule"],
            "actions": [change.name for change in changes if change.kind == "action"],
        },
    )
    ended = ended_rules(changes)
    impacts: dict[DocumentKey, RunImpact] = {}
    for kind, name, state, count in rows:
        cancelled, finishing = impacts.get((kind, name), RunImpact(0, 0))
        if kind == "action_rule" and name in ended and state in _UNSTARTED:
            cancelled += count
        else:
            finishing += count
        impacts[kind, name] = RunImpact(cancelled, finishing)
    return impacts
