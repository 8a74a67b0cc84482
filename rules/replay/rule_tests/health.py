"""The health of systems in a simulation: concluded at the end of each instant that had facts about members."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

from rules.documents.compiled_rules import CompiledRuleSet
from rules.health.observations import Fact
from rules.health.systems import HealthChange, Known, Systems
from rules.replay.rule_tests.scheduler import HEALTH, Agenda


class Health:
    """`tell` is given what changed, at its instant."""

    def __init__(
        self, rules: CompiledRuleSet, agenda: Agenda, start: datetime, tell: Callable[[HealthChange], None]
    ) -> None:
        members = rules.members
        self.owners = members.owners
        self._agenda = agenda
        self._tell = tell
        self._systems = Systems(Known(), lambda owner, key: members.of_series(owner, key, rules))
        for name in sorted(members.systems):
            self._systems.begin(name)
        for row in members.rows({}, rules):
            self._systems.place(row)
        if members.systems:
            self._agenda.add(start, HEALTH, partial(self._conclude, start))

    def hear(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            self._systems.hear([fact])
            self._agenda.add(fact.at, HEALTH, partial(self._conclude, fact.at))

    def _conclude(self, at: datetime) -> None:
        for change in self._systems.conclude(at):
            self._tell(change)
