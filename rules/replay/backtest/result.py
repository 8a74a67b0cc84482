"""The result of a backtest, of a share of the owners or of all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from rules.replay.backtest.health import ReplayedObservation
from rules.replay.backtest.recording.model import (
    AlarmTransition,
    CalculatedChange,
    RecordedEvent,
    RecordingItem,
)
from rules.replay.backtest.relevant_events import NotificationKey
from rules.replay.backtest.report.mismatches import Mismatch

BINS = 600
"""Equal parts of the window, for counting the fires of schedules."""


@dataclass
class BacktestResult:
    """The result for some owners. The sum of all shares is the result for all owners."""

    recorded_transitions: list[AlarmTransition] = field(default_factory=list)
    replayed_transitions: list[AlarmTransition] = field(default_factory=list)
    replayed_staleness: list[CalculatedChange] = field(default_factory=list)
    """Recorded staleness is compared per owner and not kept."""
    recorded_events: list[RecordedEvent] = field(default_factory=list)
    """Events that are relevant to actions. The notifications are computed from them."""
    replayed_events: list[RecordedEvent] = field(default_factory=list)
    recorded_notifications: Counter[NotificationKey] = field(default_factory=Counter)
    replayed_notifications: Counter[NotificationKey] = field(default_factory=Counter)
    fires: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Fires of schedules, by name and bin of the window."""
    mismatches: list[Mismatch] = field(default_factory=list)
    owners: int = 0
    datapoints: int = 0
    events: int = 0
    staleness_count: int = 0
    """Stale and fresh datapoints recorded in the window."""
    health_count: int = 0
    """Health datapoints recorded in the window."""
    calculated_count: int = 0
    """Results of calc_rules that were recorded in the window and compared."""
    observations: list[ReplayedObservation] = field(default_factory=list)
    """Input of the health of systems, kept until all owners have been replayed."""
    recorded_health: list[CalculatedChange] = field(default_factory=list)
    owners_with_initial_alarms: list[str] = field(default_factory=list)
    """Owners with alarms over series that were open at the start of the replay."""
    deferred_items: list[RecordingItem] = field(default_factory=list)
    """Items of owners that are systems, whose health the candidate rules may change. These owners
    are replayed after their members."""

    def __add__(self, other: BacktestResult) -> BacktestResult:
        others = vars(other)
        return BacktestResult(**{name: value + others[name] for name, value in vars(self).items()})

    def sort(self) -> None:
        self.recorded_transitions.sort(key=_transition_order)
        self.replayed_transitions.sort(key=_transition_order)
        self.replayed_staleness.sort(key=lambda change: (change.at, change.owner, change.key, change.kind))
        self.mismatches.sort()


def _transition_order(transition: AlarmTransition) -> tuple[datetime, str, str, str, UUID]:
    return transition.at, transition.rule, transition.owner, transition.kind, transition.alarm_id
