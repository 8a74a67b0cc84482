"""Calculates the windows of calc_rules in a rule test, each at the instant at which it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from rules.calc.gaps import GapIndex
from rules.calc.memory import CalcMemory
from rules.calc.rule import CalcPoint
from rules.calc.rule_set import CalcRuleSet
from rules.calc.window import CalcPeriod, CalcWindow, windows
from rules.documents.rule_book import RuleSet
from rules.engine import Arrival
from rules.lanes.arrival_gap import ArrivalGap
from rules.replay.scheduler import CALC, Scheduler
from tocsin.core.instant import instant_of, microseconds_of

_FOREVER = 2**62


class SimulatedCalc:
    """Calls `on_point` with the rule and each result, at the end of its window."""

    def __init__(
        self,
        rules: RuleSet,
        scheduler: Scheduler,
        start: datetime,
        gaps: Sequence[ArrivalGap],
        on_point: Callable[[str, CalcPoint], None],
        later: Iterable[RuleSet] = (),
    ) -> None:
        """`later` are the rules of later calls of `change`: what they read is kept from the start."""
        self._scheduler = scheduler
        self._gaps = GapIndex(gaps)
        self._on_point = on_point
        self._memory = CalcMemory()
        self._all = [CalcRuleSet(rules), *(CalcRuleSet(others) for others in later)]
        self._span = max(compiled.span for compiled in self._all)
        self.change(rules, start)

    def change(self, rules: RuleSet, at: datetime) -> None:
        """Calculate the windows that end after an instant with these rules."""
        self._rules = CalcRuleSet(rules)
        begins = microseconds_of(at)
        self._windows = windows([CalcPeriod(0, begins, self._rules)], begins, _FOREVER)
        self._await_next()

    def arrive(self, arrival: Arrival) -> None:
        if any(rules.reads(arrival.key) for rules in self._all):
            self._memory.arrive([arrival])

    def _await_next(self) -> None:
        window = next(self._windows, None)
        if window is not None:
            self._scheduler.add(instant_of(window.end), CALC, partial(self._calculate, window))

    def _calculate(self, window: CalcWindow) -> None:
        if window.period.rules is not self._rules:
            return
        for rule, concluded in self._memory.calculate(self._rules, window.rules, window.end, self._gaps):
            for point in concluded.points:
                self._on_point(rule.name, point)
        self._memory.forget(window.end - self._span)
        self._await_next()
