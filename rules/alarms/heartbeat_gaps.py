"""Arrival gaps as inputs of the heartbeats of a partition.

Guarantee: a gap that a batch of the data lane ends takes effect before the message that ended it, for
every heartbeat of the partition, in the transaction of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from rules.alarms.batch_writes import AlarmBatch, StateKey
from rules.engine import CompiledRules, Effects, HeartbeatRule, RuleState, pass_gap
from rules.lanes.arrival_gap import ArrivalGap
from tocsin.core.db import Connection, fetch_all


class HeartbeatGaps:
    """The arrival gaps that a batch ends, and the heartbeats that they concern."""

    def __init__(
        self, rules: CompiledRules, keys: Sequence[StateKey] = (), gaps: Sequence[ArrivalGap] = ()
    ) -> None:
        self._rules = {rule.name: rule for rule in rules.heartbeats}
        self.keys = [key for key in keys if key[0] in self._rules]
        self._gaps = list(gaps) if self.keys else []

    @classmethod
    async def read(
        cls, connection: Connection, partition: int, rules: CompiledRules, gaps: Sequence[ArrivalGap]
    ) -> HeartbeatGaps:
        if not gaps or not rules.heartbeats:
            return cls(rules)
        rows = await fetch_all(connection, "rules.alarms/list_heartbeats", {"partition": partition})
        return cls(rules, [(rule, owner, instance) for rule, owner, instance in rows], gaps)

    def end_before(self, alarms: AlarmBatch, at: datetime | None) -> None:
        """End the gaps that come before an input; all of them if `at` is None."""
        while self._gaps and (at is None or self._gaps[0].ended_at <= at):
            gap = self._gaps.pop(0)
            for key in self.keys:
                alarms.apply_observed(key, partial(_end_gap, self._rules[key[0]], key[1], gap))


def _end_gap(rule: HeartbeatRule, owner: str, gap: ArrivalGap, state: RuleState) -> tuple[RuleState, Effects]:
    return pass_gap(rule, owner, state, gap.began_at, gap.ended_at)
