"""The alarms that hold, when the rules change.

Guarantee: what `fates` decides is written as everything else about alarms is (`Judgement`), in the apply's own
transaction, a page at a time: timers first, then states and alarms; and events for the one append. The partitions are
locked, so only the clock could change a state meanwhile; then `Conflict` is raised, and the apply begins again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

from rules.alarms.batch_writes import Judgement, Seen, Subject
from rules.alarms.rule_change import Fate, switch
from rules.engine import RuleState
from tocsin.core.db import Connection, statement
from tocsin.core.records import NewEvent

_AT_ONCE = 250
Complete = Mapping[tuple[str, int], datetime | None]
"""`watermark` by lane and partition."""


class Held(NamedTuple):
    """A state with an alarm, and until when its partition is complete."""

    seen: Seen
    watermark: datetime | None


class ChangedAlarms(Judgement):
    """Of a page of states that `read_held` gave."""

    def __init__(self, held: Mapping[Subject, Held], fates: Mapping[str, Fate], at: datetime) -> None:
        # Where a state belongs is only asked of new ones, and here are none.
        super().__init__("data", 0, {subject: one.seen for subject, one in held.items()})
        for subject, one in held.items():
            fate = fates[subject[0]]
            self.change(subject, partial(switch, fate=fate, watermark=one.watermark, at=at))


async def change_alarms(
    connection: Connection, fates: Mapping[str, Fate], complete: Complete, at: datetime
) -> list[NewEvent]:
    """What is to be appended; the states of rules that have ended are forgotten."""
    events: list[NewEvent] = []
    async for held in read_held(connection, fates, complete):
        page = ChangedAlarms(held, fates, at)
        await page.timers(connection)
        await page.entities(connection)
        events += page.events
    ended = sorted(name for name, fate in fates.items() if fate.rule is None)
    if ended:
        await connection.execute(statement("rules.apply/delete_states"), {"rules": ended})
    return events


async def read_held(
    connection: Connection, fates: Mapping[str, Fate], complete: Complete
) -> AsyncIterator[dict[Subject, Held]]:
    """Page by page: what is done with one takes its time, and a session that is idle for long inside of a transaction
    is ended."""
    after: Subject = ("", "")
    query = statement("rules.apply/read_held_states")
    while fates:
        given = {"rules": sorted(fates), "rule": after[0], "owner": after[1], "most": _AT_ONCE}
        rows = await (await connection.execute(query, given)).fetchall()
        if rows:
            after = rows[-1][:2]
            yield {
                (rule, owner): Held(
                    Seen(RuleState.from_json(state), version, correlation_id), complete.get((lane, partition))
                )
                for rule, owner, lane, partition, version, state, correlation_id in rows
            }
        if len(rows) < _AT_ONCE:
            return
