"""Timelines of the rules: which documents a replay uses at which position, and the effects of a
change.

Guarantee: `History` repeats what happened. A datapoint is evaluated by the documents of the apply
that the cutover of its partition names, an event by those of its seq. At each cutover the effects
of the apply on alarms are repeated. `Candidate` uses one set of documents for the whole window.

In the record lane an apply may be ahead of the position of the lane. It changes alarms at the
position that its cutover records, and the lane changes them again when it passes the apply's own
event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple, Protocol

from rules.alarms.rule_change import (
    StateChange,
    rules_over_alarms_to_begin,
    rules_to_reevaluate,
    state_changes,
)
from rules.apply.cutover import Cutover, Cutovers
from rules.calc.rule_set import calc_rule_book
from rules.calc.window import ApplyBegin, CalcPeriod, period_begins
from rules.dispatch.matcher import ActionMatcher
from rules.documents.compiled_rules import CompiledRuleSet, compiled_rule_book
from rules.documents.rule_book import RuleBook, RuleSet
from rules.engine import CompiledRules, Rule
from rules.replay.backtest.recording.model import (
    DocumentVersion,
    LaneCutover,
    RecordedApply,
    RecordingHeader,
)
from rules.suppression import Inhibit
from rules.suppression.reader import compile_inhibits
from schemas.documents import InhibitDocument, MaintenanceDocument
from schemas.values.rule_ref import RuleRef
from tocsin.core.instant import MICROSECOND, microseconds_of

_BEGINNING = datetime.min.replace(tzinfo=UTC)


class RuleChange(NamedTuple):
    """A change of the rules, after a position of a lane."""

    position: tuple[datetime, float]
    """(arrived_at, stream_seq) in the data lane, (watermark, seq) in the record lane."""
    watermark: datetime | None
    at: datetime
    state_changes: Mapping[str, StateChange]
    after: CompiledRuleSet
    reevaluated: frozenset[str] = frozenset()
    """Rules that evaluate the series that are stale at the change."""
    drops_states: bool = True
    """Whether the states of removed rules are dropped."""
    rules_seq: int = 0
    begun: Sequence[Rule] = ()
    """Rules over alarms that read which alarms are open."""


class Timeline(NamedTuple):
    first: CompiledRuleSet
    changes: Sequence[RuleChange]
    rules_seq: int = 0
    """The seq of the apply of the first rules."""
    begins: Mapping[str, datetime] = {}
    """When each heartbeat of the first rules began, if the recording has its apply."""


class HealthPeriod(NamedTuple):
    """The documents of systems from one apply to the next. No health changes before `at`."""

    rules_seq: int
    at: datetime
    rules: CompiledRuleSet


class Timelines(Protocol):
    names_series: bool
    """Whether the types of these documents, and not those of the time, give datapoints their series."""

    def of_series(self, partition: int) -> Timeline: ...

    def of_events(self) -> Sequence[RuleChange]: ...

    def of_health(self) -> Sequence[HealthPeriod]: ...

    def of_calc(self) -> Sequence[CalcPeriod]:
        """The periods of the calc_rules."""

    def at(self, seq: int) -> CompiledRules:
        """The rules that evaluate the event of a seq."""

    def matcher(self, seq: int) -> ActionMatcher:
        """The matcher of the event of a seq."""

    def inhibits(self, seq: int) -> tuple[Inhibit, ...]:
        """The inhibits in force at a seq."""

    @property
    def maintenance(self) -> Sequence[MaintenanceDocument] | None:
        """The maintenances whose windows are computed; None if the recorded windows hold."""


class History:
    """The rules of the time."""

    names_series = False

    def __init__(self, header: RecordingHeader) -> None:
        self._header = header
        self._rules = compiled_rule_book()
        self._rules.load(header.versions)
        self._matchers = RuleBook(ActionMatcher, *ActionMatcher.DOCUMENT_TYPES)
        self._matchers.load(header.versions)
        self._inhibits = RuleBook(compile_inhibits, InhibitDocument)
        self._inhibits.load(header.versions)
        self._applies = sorted(header.applies, key=lambda apply: apply.seq)
        self._data_cutovers = [cutover for cutover in header.cutovers if cutover.lane == "data"]
        rows = [Cutover(*cutover[1:]) for cutover in self._data_cutovers]
        self._cutovers = Cutovers([apply.seq for apply in self._applies], rows)
        self.of_series = cache(self._of_series)
        self.of_events = cache(self._of_events)
        self._changes_of = cache(self._find_changes)

    def at(self, seq: int) -> CompiledRules:
        return self._rules.at(seq)

    def matcher(self, seq: int) -> ActionMatcher:
        return self._matchers.at(seq)

    def inhibits(self, seq: int) -> tuple[Inhibit, ...]:
        return self._inhibits.at(seq)

    @property
    def maintenance(self) -> Sequence[MaintenanceDocument] | None:
        return None

    def _of_series(self, partition: int) -> Timeline:
        start = (_BEGINNING, -1) if self._header.is_whole else (self._header.start, -1)
        rules_seq = self._cutovers.rules_seq(partition, *start)
        times = {apply.seq: apply.at for apply in self._applies}
        changes = []
        for row in self._cutovers.of_partition(partition):
            if row.position <= start:
                continue
            changed, reevaluated = self._changes_of(row.rules_seq)
            at = times.get(row.rules_seq) or row.watermark or self._header.start
            after = self._rules.at(row.rules_seq + 1)
            changes.append(
                RuleChange(
                    row.position,
                    row.watermark,
                    at,
                    changed,
                    after,
                    reevaluated,
                    rules_seq=row.rules_seq,
                )
            )
        begins = {
            str(RuleRef("heartbeat", version.name)): times[version.from_seq]
            for version in self._header.versions
            if version.kind == "heartbeat" and version.from_seq <= rules_seq and version.from_seq in times
        }
        return Timeline(self._rules.at(rules_seq + 1), changes, rules_seq, begins)

    def of_health(self) -> Sequence[HealthPeriod]:
        """The periods of health, with the beginnings that `rules/apply/systems.py` decides."""
        kinds = {"event_rule", "datapoint_type", "system", "heartbeat"}
        versions = [version for version in self._header.versions if version.kind in kinds]
        changed_at = {seq for version in versions for seq in (version.from_seq, version.until_seq)}
        periods = [HealthPeriod(0, self._header.start, self._rules.at(0))]
        for apply in self._applies:
            if apply.seq in changed_at:
                begins = [
                    cutover.watermark
                    for cutover in self._data_cutovers
                    if cutover.rules_seq == apply.seq and cutover.watermark
                ]
                if periods[-1].rules.members.systems:
                    begins.append(periods[-1].at)
                after = self._rules.at(apply.seq + 1)
                periods.append(HealthPeriod(apply.seq, max(begins, default=apply.at), after))
        return periods

    def of_calc(self) -> Sequence[CalcPeriod]:
        """The periods of calc_rules, with the beginnings that `rules/calc/evaluator.py` reads."""
        book = calc_rule_book()
        book.load(self._header.versions)
        watermarks: dict[int, datetime] = {}
        for cutover in self._data_cutovers:
            if cutover.watermark is not None:
                seq = cutover.rules_seq
                watermarks[seq] = max(cutover.watermark, watermarks.get(seq, cutover.watermark))
        begins = period_begins(
            ApplyBegin(apply.seq, watermarks.get(apply.seq), apply.at) for apply in self._applies
        )
        return [CalcPeriod(seq, begin, book.at(seq + 1)) for seq, begin in begins]

    def _of_events(self) -> Sequence[RuleChange]:
        cutovers = {
            cutover.rules_seq: cutover for cutover in self._header.cutovers if cutover.lane == "record"
        }
        changes = []
        for apply in self._applies:
            if apply.recorded_at < self._header.start:
                continue
            cutover = cutovers.get(apply.seq) or _without_lag(apply)
            changed, _ = self._changes_of(apply.seq)
            before, after = self._rules.at(apply.seq), self._rules.at(apply.seq + 1)
            position = (cutover.watermark or _BEGINNING, float(cutover.seq))
            changes.append(
                RuleChange(position, cutover.watermark, apply.at, changed, after, rules_seq=apply.seq)
            )
            of_lane = {
                name: change
                for name, change in state_changes(before, after).items()
                if before.rules[name].document.datapoint is None
            }
            # The watermark of a lane that has read the apply, which operators' positions have, too.
            position = (apply.recorded_at - MICROSECOND, float(apply.seq))
            changes.append(
                RuleChange(
                    *(position, apply.recorded_at, apply.recorded_at, of_lane, after),
                    drops_states=False,
                    rules_seq=apply.seq,
                    begun=rules_over_alarms_to_begin(before, after),
                )
            )
        return sorted(changes, key=lambda change: change.position[1])

    def _find_changes(self, rules_seq: int) -> tuple[Mapping[str, StateChange], frozenset[str]]:
        before, after = self._rules.at(rules_seq), self._rules.at(rules_seq + 1)
        return state_changes(before, after), rules_to_reevaluate(before, after)


class Candidate:
    """One set of documents for the whole window."""

    names_series = True

    def __init__(self, versions: Sequence[DocumentVersion], start: datetime) -> None:
        self._start = start
        in_force = [version._replace(from_seq=-1, until_seq=None) for version in versions]
        rules = compiled_rule_book()
        rules.load(in_force)
        matchers = RuleBook(ActionMatcher, *ActionMatcher.DOCUMENT_TYPES)
        matchers.load(in_force)
        suppression = RuleBook(_suppression_documents, InhibitDocument, MaintenanceDocument)
        suppression.load(in_force)
        documents = suppression.at(0)
        self._inhibits = compile_inhibits(documents)
        self._maintenance = tuple(documents.of(MaintenanceDocument).values())
        calc = calc_rule_book()
        calc.load(in_force)
        self._calc = calc.at(0)
        self._rules = rules.at(0)
        self._matcher = matchers.at(0)

    def of_series(self, partition: int) -> Timeline:
        return Timeline(self._rules, ())

    def of_events(self) -> Sequence[RuleChange]:
        return ()

    def of_health(self) -> Sequence[HealthPeriod]:
        return [HealthPeriod(0, self._start, self._rules)]

    def of_calc(self) -> Sequence[CalcPeriod]:
        return [CalcPeriod(0, microseconds_of(self._start), self._calc)]

    def at(self, seq: int) -> CompiledRules:
        return self._rules

    def matcher(self, seq: int) -> ActionMatcher:
        return self._matcher

    def inhibits(self, seq: int) -> tuple[Inhibit, ...]:
        return self._inhibits

    @property
    def maintenance(self) -> Sequence[MaintenanceDocument] | None:
        return self._maintenance


def _suppression_documents(documents: RuleSet, _: RuleSet | None) -> RuleSet:
    return documents


def _without_lag(apply: RecordedApply) -> LaneCutover:
    """The cutover of an apply without a row, as if the lane had read everything before it."""
    return LaneCutover("record", 0, apply.seq, apply.seq - 1, apply.recorded_at - MICROSECOND)
