"""The alarms that hold, when the rules change.

Guarantee: what `fates` decides is written as everything else about alarms is (`Judgement`), in the apply's own
transaction: timers first, then states and alarms, and events for the one append. The partitions are locked, so only
the clock could change a state meanwhile; then `Overtaken` is raised, and the apply begins again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

from rules.alarms.fates import Fate, switch
from rules.alarms.judgement import Judgement, Seen, Subject
from rules.engine import RuleState
from tocsin.core.db import Connection, statement

Complete = Mapping[tuple[str, int], datetime | None]
"""`complete_until` by lane and partition."""


class Held(NamedTuple):
    """A state with an alarm, and until when its partition is complete."""

    seen: Seen
    complete_until: datetime | None


class ChangedAlarms(Judgement):
    """`read_held` gives the states; those of rules that have ended are forgotten."""

    def __init__(self, held: Mapping[Subject, Held], fates: Mapping[str, Fate], at: datetime) -> None:
        # Where a state belongs is only asked of new ones, and here are none.
        super().__init__("data", 0, {subject: one.seen for subject, one in held.items()})
        self._ended = sorted(name for name, fate in fates.items() if fate.rule is None)
        for subject, one in held.items():
            fate = fates[subject[0]]
            self.change(subject, partial(switch, fate=fate, complete_until=one.complete_until, at=at))

    @property
    def resolved(self) -> int:
        return sum(event.type == "alarm-resolved" for event in self.events)

    async def entities(self, connection: Connection) -> None:
        await super().entities(connection)
        if self._ended:
            await connection.execute(statement("rules.applying/delete_states"), {"rules": self._ended})


async def read_held(
    connection: Connection, fates: Mapping[str, Fate], complete: Complete
) -> dict[Subject, Held]:
    if not fates:
        return {}
    rows = await (
        await connection.execute(statement("rules.applying/read_held_states"), {"rules": sorted(fates)})
    ).fetchall()
    return {
        (rule, owner): Held(
            Seen(RuleState.from_json(state), version, correlation_id), complete.get((lane, partition))
        )
        for rule, owner, lane, partition, version, state, correlation_id in rows
    }
