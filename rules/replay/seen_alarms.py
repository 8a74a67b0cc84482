"""The alarms of one owner that are open at the position of the record lane, in memory.

Rule tests and backtests keep them for rules over alarms, which read them when they come into force.
Live, `rules.alarms.begin_over_alarms` reads the same from the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rules.engine import OpenAlarm, OpenAlarms, Rule
from rules.engine.over_alarms import alarm_of
from rules.replay.memory import RuleMemory
from schemas.wire.alarm_events import event_type, is_transition

_OPENED, _RESOLVED = event_type("opened"), event_type("resolved")


class SeenAlarms:
    def __init__(self) -> None:
        self._open: dict[tuple[str, str], OpenAlarm] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, alarm: OpenAlarm) -> None:
        self._open.setdefault((alarm.rule, alarm.instance), alarm)

    def follow(self, facts: Mapping[str, Any]) -> None:
        """Follow an event that the lane has read."""
        if not is_transition(facts):
            return
        alarm = alarm_of(facts)
        if facts["type"] == _OPENED:
            self.add(alarm)
        elif facts["type"] == _RESOLVED:
            self._open.pop((alarm.rule, alarm.instance), None)

    def begin(self, memory: RuleMemory, rules: Iterable[Rule], at: datetime) -> None:
        """Let rules over alarms read what is open. Other rules are passed over."""
        opened = OpenAlarms(at, memory.owner, tuple(self._open.values()))
        for rule in rules:
            if rule.composite is not None:
                memory.step(rule, opened)
