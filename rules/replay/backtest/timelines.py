"""Which rules held where, and what each change of them did: the timelines that a replay follows.

Guarantee: `History` is what happened: a datapoint is judged by the documents of the apply that its partition's switch
names, an event by those of its seq, and at each place what the apply did to alarms is done again. `Candidate` is one
set of documents for the whole window.

In the record lane an apply may be ahead of what was read. It acts on alarms where the lane stands (`changes` at its
switch), and the lane acts again when it passes the apply's own event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple, Protocol

from rules.alarms.rule_change import StateChange, rules_to_reevaluate, state_changes
from rules.apply.cutover import Cutover, Cutovers
from rules.dispatch.matcher import ActionMatcher
from rules.documents.compiled_rules import CompiledRuleSet, compiled_rule_book
from rules.documents.rule_book import RuleBook
from rules.engine import CompiledRules
from rules.replay.backtest.recording.model import Apply, LaneSwitch, Story, Version
from tocsin.core.instant import MICROSECOND

_EVER = datetime.min.replace(tzinfo=UTC)


class Change(NamedTuple):
    """The rules change at a place of a lane: behind (arrived_at, stream_seq), or behind (_, seq) of the record lane."""

    place: tuple[datetime, float]
    watermark: datetime | None
    at: datetime
    state_changes: Mapping[str, StateChange]
    after: CompiledRuleSet
    anew: frozenset[str] = frozenset()
    """Rules that hear of series that are stale already."""
    forgets: bool = True
    """The states of rules that ended are forgotten, alarm or not."""
    rules_seq: int = 0


class Timeline(NamedTuple):
    first: CompiledRuleSet
    changes: Sequence[Change]
    rules_seq: int = 0
    """Of the apply that the first rules are of."""


class Era(NamedTuple):
    """From an apply on, systems are what its documents say; no health is of an earlier instant than `at`."""

    rules_seq: int
    at: datetime
    rules: CompiledRuleSet


class Timelines(Protocol):
    def of_series(self, partition: int) -> Timeline: ...

    def of_events(self) -> Sequence[Change]: ...

    def of_health(self) -> Sequence[Era]: ...

    def at(self, seq: int) -> CompiledRules:
        """The rules that judge the event of a seq."""

    def matcher(self, seq: int) -> ActionMatcher: ...


class History:
    def __init__(self, story: Story) -> None:
        self._story = story
        self._rules = compiled_rule_book()
        self._rules.load(story.versions)
        self._matchers = RuleBook(ActionMatcher, *ActionMatcher.KINDS)
        self._matchers.load(story.versions)
        self._applies = sorted(story.applies, key=lambda one: one.seq)
        rows = [Cutover(*one[1:]) for one in story.switches if one.lane == "data"]
        self._cutovers = Cutovers([one.seq for one in self._applies], rows)
        self.of_series = cache(self._of_series)
        self.of_events = cache(self._of_events)
        self._change = cache(self._changed)

    def at(self, seq: int) -> CompiledRules:
        return self._rules.at(seq)

    def matcher(self, seq: int) -> ActionMatcher:
        return self._matchers.at(seq)

    def _of_series(self, partition: int) -> Timeline:
        begin = (_EVER, -1) if self._story.is_whole else (self._story.start, -1)
        rules_seq = self._cutovers.rules_seq(partition, *begin)
        times = {one.seq: one.at for one in self._applies}
        changes = []
        for row in self._cutovers.of_partition(partition):
            if row.position <= begin:
                continue
            decided, anew = self._change(row.rules_seq)
            at = times.get(row.rules_seq) or row.watermark or self._story.start
            after = self._rules.at(row.rules_seq + 1)
            changes.append(
                Change(row.position, row.watermark, at, decided, after, anew, rules_seq=row.rules_seq)
            )
        return Timeline(self._rules.at(rules_seq + 1), changes, rules_seq)

    def of_health(self) -> Sequence[Era]:
        """As `rules/apply/systems.py` decides when one begins."""
        kinds = {"event_rule", "datapoint_type", "system"}
        of_health = [one for one in self._story.versions if one.kind in kinds]
        begins = {seq for one in of_health for seq in (one.from_seq, one.until_seq)}
        eras = [Era(0, self._story.start, self._rules.at(0))]
        for one in self._applies:
            if one.seq in begins:
                rows = (row for row in self._story.switches if row.lane == "data")
                read = [row.watermark for row in rows if row.rules_seq == one.seq and row.watermark]
                if eras[-1].rules.members.systems:
                    read.append(eras[-1].at)
                eras.append(Era(one.seq, max(read, default=one.at), self._rules.at(one.seq + 1)))
        return eras

    def _of_events(self) -> Sequence[Change]:
        stood = {one.rules_seq: one for one in self._story.switches if one.lane == "record"}
        changes = []
        for one in self._applies:
            if one.recorded_at < self._story.start:
                continue
            switch = stood.get(one.seq) or _caught_up(one)
            decided, _ = self._change(one.seq)
            after = self._rules.at(one.seq + 1)
            place = (switch.watermark or _EVER, float(switch.seq))
            changes.append(Change(place, switch.watermark, one.at, decided, after))
            before = self._rules.at(one.seq)
            of_lane = {
                name: change
                for name, change in state_changes(before, after).items()
                if before.rules[name].document.event is not None
            }
            place = (one.recorded_at, float(one.seq))
            changes.append(Change(place, one.recorded_at, one.recorded_at, of_lane, after, forgets=False))
        return sorted(changes, key=lambda change: change.place[1])

    def _changed(self, rules_seq: int) -> tuple[Mapping[str, StateChange], frozenset[str]]:
        before, after = self._rules.at(rules_seq), self._rules.at(rules_seq + 1)
        return state_changes(before, after), rules_to_reevaluate(before, after)


class Candidate:
    """The documents of one set, as versions that hold for ever."""

    def __init__(self, versions: Sequence[Version], begins: datetime) -> None:
        self._begins = begins
        for_ever = [one._replace(from_seq=-1, until_seq=None) for one in versions]
        rules = compiled_rule_book()
        rules.load(for_ever)
        matchers = RuleBook(ActionMatcher, *ActionMatcher.KINDS)
        matchers.load(for_ever)
        self._rules = rules.at(0)
        self._matcher = matchers.at(0)

    def of_series(self, partition: int) -> Timeline:
        return Timeline(self._rules, ())

    def of_events(self) -> Sequence[Change]:
        return ()

    def of_health(self) -> Sequence[Era]:
        return [Era(0, self._begins, self._rules)]

    def at(self, seq: int) -> CompiledRules:
        return self._rules

    def matcher(self, seq: int) -> ActionMatcher:
        return self._matcher


def _caught_up(one: Apply) -> LaneSwitch:
    """Applied before lanes wrote down where they stood: as if nothing had been left to read."""
    return LaneSwitch("record", 0, one.seq, one.seq - 1, one.recorded_at - MICROSECOND)
