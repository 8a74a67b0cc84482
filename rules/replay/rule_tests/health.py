"""Computes the health of systems in a rule test, at the end of each instant with observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

from rules.documents.compiled_rules import CompiledRuleSet
from rules.health.observations import Observation
from rules.health.systems import HealthChange, MemberStates, Systems, removal_changes
from rules.replay.scheduler import HEALTH, Scheduler


class SimulatedHealth:
    """Calls `on_change` with each change of health, at its instant."""

    def __init__(
        self,
        rules: CompiledRuleSet,
        scheduler: Scheduler,
        start: datetime,
        on_change: Callable[[HealthChange], None],
    ) -> None:
        self._scheduler = scheduler
        self._on_change = on_change
        self._states = MemberStates()
        self._systems = Systems(self._states, lambda owner, key: ())
        self.change(rules, start)

    def change(self, rules: CompiledRuleSet, at: datetime) -> None:
        """Replace the systems, as an apply does (`rules/apply/systems.py`)."""
        members, before = rules.members, self._systems
        for removed in removal_changes(before, members.systems, at):
            self._on_change(removed)
        self._systems = Systems(self._states, lambda owner, key: members.of_series(owner, key, rules))
        for name in sorted(members.systems):
            self._systems.add_system(name, before.state(name))
        for row in members.rows(self._states.series, rules):
            self._systems.add_member(row)
        if members.systems:
            self._scheduler.add(at, HEALTH, partial(self._decide, at))

    def observe(self, observations: Iterable[Observation]) -> None:
        for observation in observations:
            self._systems.observe([observation])
            self._scheduler.add(observation.at, HEALTH, partial(self._decide, observation.at))

    def _decide(self, at: datetime) -> None:
        for change in self._systems.conclude(at):
            self._on_change(change)
