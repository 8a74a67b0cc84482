"""Replays one share of the owners, and completes the result of all shares.

Guarantee: the result depends on the recording and the rules alone, not on the shares.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache

from rules.calc.rule import CalcPoint
from rules.engine import Arrival
from rules.replay.backtest.calc import with_replayed_results
from rules.replay.backtest.health import derive_health, replay_order, with_replayed_health
from rules.replay.backtest.owner_replay import OwnerReplay
from rules.replay.backtest.recording.model import (
    Arrivals,
    DocumentVersion,
    OwnerHeader,
    Recording,
    RecordingHeader,
    RecordingItem,
)
from rules.replay.backtest.report.mismatches import compare_health
from rules.replay.backtest.result import BacktestResult
from rules.replay.backtest.timelines import Candidate, HealthPeriod, History, Timelines


class ShareReplay:
    """Replays shares with the candidate documents; with the rules of the time if None."""

    def __init__(
        self,
        header: RecordingHeader,
        candidate: list[DocumentVersion] | None,
        results: Mapping[str, Sequence[CalcPoint]] | None = None,
    ) -> None:
        """`results` are those of the candidate calc_rules, by owner; None if the recorded ones hold."""
        self._header = header
        self._results = results
        self._is_historical = candidate is None
        self.history = History(header)
        self.rules: Timelines = self.history
        self._deferred_owners: set[str] = set()
        if candidate is not None:
            self.rules = Candidate(candidate, header.start)
            self._deferred_owners = self.rules.of_health()[0].rules.members.systems

    async def run(
        self, source: Recording, share: int, of: int, report: Callable[[float], None]
    ) -> BacktestResult:
        result = BacktestResult()
        replay: OwnerReplay | None = None
        async for done, item in self._with_results(source.items(share, of)):
            report(done)
            if isinstance(item, OwnerHeader):
                if replay is not None:
                    replay.finish()
                replay = None if item.owner in self._deferred_owners else self._begin(item, result)
            elif replay is not None:
                replay.take(item)
            if replay is None:
                result.deferred_items.append(item)
        if replay is not None:
            replay.finish()
        return result

    async def _with_results(
        self, items: AsyncIterator[tuple[float, RecordingItem]]
    ) -> AsyncIterator[tuple[float, RecordingItem]]:
        """The items, with the arrivals of an owner and its results of candidate rules as one item."""
        held: list[Arrival] | None = None
        owner, fraction = "", 0.0
        async for done, item in items:
            if self._results is None:
                yield done, item
                continue
            if held is not None and isinstance(item, Arrivals):
                held += item.rows
                continue
            if held is not None:
                yield fraction, Arrivals(with_replayed_results(self._results.get(owner, ()), held))
                held = None
            yield done, item
            if isinstance(item, OwnerHeader):
                owner, fraction, held = item.owner, done, []
        if self._results is not None and held is not None:
            yield fraction, Arrivals(with_replayed_results(self._results.get(owner, ()), held))

    def replay_new_owners(self, owners: Iterable[str], result: BacktestResult) -> None:
        """Replay owners that have results of candidate calc_rules and are not in the recording."""
        for owner in sorted(owners) if self._results is not None else ():
            header, points = OwnerHeader(owner, 0, (), ()), (self._results or {}).get(owner, ())
            arrivals = Arrivals(with_replayed_results(points, ()))
            if owner in self._deferred_owners:
                result.deferred_items += (header, arrivals)
                continue
            replay = self._begin(header, result)
            replay.take(arrivals)
            replay.finish()

    def finish(self, result: BacktestResult) -> BacktestResult:
        """Complete the result of all owners: the health of systems, and the alarms over it."""
        periods = self.rules.of_health()
        since, until = self._header.since, self._header.horizon("health", 0)
        if self._is_historical:
            recorded = [change for change in result.recorded_health if since <= change.at <= until]
            has_systems = any(period.rules.members.systems for period in periods)
            derived = derive_health(periods, result.observations) if has_systems else []
            replayed = [change for change in derived if since <= change.at <= until]
            result.health_count = len(recorded)
            has_initial_alarm = _initial_alarm_test(periods, result.owners_with_initial_alarms)
            result.mismatches += compare_health(recorded, replayed, has_initial_alarm)
        else:
            self._replay_systems(periods, result, until)
        result.observations, result.recorded_health = [], []
        result.owners_with_initial_alarms, result.deferred_items = [], []
        result.sort()
        return result

    def _replay_systems(
        self, periods: Sequence[HealthPeriod], result: BacktestResult, until: datetime
    ) -> None:
        items: dict[str, list[RecordingItem]] = {}
        for item in result.deferred_items:
            if isinstance(item, OwnerHeader):
                of_owner = items.setdefault(item.owner, [])
            of_owner.append(item)
        for level in replay_order(periods[0].rules.members):
            changes = [change for change in derive_health(periods, result.observations) if change.at <= until]
            for name in level:
                header, *others = items.get(name, [OwnerHeader(name, 0, (), ())])
                assert isinstance(header, OwnerHeader)
                arrived = [row for item in others if isinstance(item, Arrivals) for row in item.rows]
                replay = self._begin(header, result)
                of_system = (change for change in changes if change.system == name)
                replay.take(Arrivals(with_replayed_health(of_system, arrived)))
                for item in others:
                    if not isinstance(item, Arrivals):
                        replay.take(item)
                replay.finish()

    def _begin(self, header: OwnerHeader, result: BacktestResult) -> OwnerReplay:
        return OwnerReplay(header, self._header, self.rules, self.history, result, self._is_historical)


def _initial_alarm_test(periods: Sequence[HealthPeriod], owners: Sequence[str]) -> Callable[[str], bool]:
    """A test whether a member of a system had an alarm that was open at the start."""
    with_alarms = frozenset(owners)

    @cache
    def has_initial_alarm(system: str) -> bool:
        return any(period.rules.members.owners_of(system) & with_alarms for period in periods)

    return has_initial_alarm
