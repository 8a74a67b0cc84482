"""What a change of an `action_rule` or `action` document does to the actions under way, and what it would do.

Guarantee: an action that runs finishes by the document it was started with, whatever becomes of that document. What a
removed or disabled action_rule has only gathered or queued is cancelled, with the reason in its history; its
timer goes first, so that either the clock starts it or we cancel it, never both.

An event that was committed before the apply and is dispatched after it is still judged by the rules of its seq, and may
start an action of a rule that is gone: that action is whole, and finishes as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rules.apply.plan import Change, Key
from rules.lanes.batch import Writes
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.records import NewStep, Records

_NOT_BEGUN = ("gathering", "queued")


class UnderWay(NamedTuple):
    """How many actions a change would cancel, and how many finish by the document they were started with."""

    cancelled: int
    finishing: int


def ended_rules(changes: Iterable[Change]) -> dict[str, str]:
    """Why, by the name of the action_rule that starts nothing any more."""
    return {
        change.name: "the rule was removed" if change.after is None else "the rule was disabled"
        for change in changes
        if change.kind == "action_rule" and (change.after is None or not change.after["enabled"])
    }


class CancelWaiting(Writes):
    """Actions that their rules have only gathered or queued; `ended` says why, by action_rule."""

    def __init__(self, ended: Mapping[str, str]) -> None:
        self._columns = {"rules": list(ended), "reasons": list(ended.values())}
        self.steps: list[NewStep] = []

    async def timers(self, connection: Connection) -> None:
        if self._columns["rules"]:
            await connection.execute(statement("rules.apply/disarm_waiting_actions"), self._columns)

    async def entities(self, connection: Connection) -> None:
        if not self._columns["rules"]:
            return
        rows = await fetch_all(connection, "rules.apply/cancel_waiting_actions", self._columns)
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

    def records(self) -> Records:
        return Records(steps=self.steps)


async def count_under_way(connection: Connection, changes: Sequence[Change]) -> dict[Key, UnderWay]:
    """Of the action_rules and actions that change."""
    rows = await fetch_all(
        connection,
        "rules.apply/count_under_way",
        {
            "rules": [change.name for change in changes if change.kind == "action_rule"],
            "actions": [change.name for change in changes if change.kind == "action"],
        },
    )
    ended = ended_rules(changes)
    found: dict[Key, UnderWay] = {}
    for kind, name, state, count in rows:
        cancelled, finishing = found.get((kind, name), UnderWay(0, 0))
        if kind == "action_rule" and name in ended and state in _NOT_BEGUN:
            cancelled += count
        else:
            finishing += count
        found[kind, name] = UnderWay(cancelled, finishing)
    return found
