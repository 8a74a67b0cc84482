"""Pairs the recorded alarms with those of the replay, and counts the differences per rule.

Guarantee: each alarm is counted once. Two alarms are the same incident if they have the same id, or
if they belong to the same rule and owner and overlap. An alarm without a partner is gained or lost.

`then` is what was recorded, `now` what the replay gives.

Pure: no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Literal, NamedTuple
from uuid import UUID

from rules.replay.backtest.recording.model import AlarmTransition, RecordingHeader
from rules.replay.backtest.result import BacktestResult

ChangeKind = Literal["gained", "lost", "earlier", "later", "ended otherwise", "same"]
_NOISIEST = 10
_MOST_UNCHANGED = 500
_ZERO = timedelta(0)


class AlarmSpan(NamedTuple):
    """The time of an alarm within the window, limited to the window at both ends."""

    rule: str
    owner: str
    key: str
    opened_at: datetime
    ended_at: datetime
    alarm_id: UUID
    is_open: bool
    message: str


class AlarmPair(NamedTuple):
    kind: ChangeKind
    then: AlarmSpan | None
    now: AlarmSpan | None

    @property
    def span(self) -> AlarmSpan:
        span = self.now or self.then
        assert span is not None
        return span


class RuleComparison(NamedTuple):
    rule: str
    then: int
    now: int
    kinds: Counter[str]
    time_then: timedelta
    time_now: timedelta
    notifications_then: float
    """Notifications per day."""
    notifications_now: float


class Comparison(NamedTuple):
    spans_then: Sequence[AlarmSpan]
    spans_now: Sequence[AlarmSpan]
    pairs: Sequence[AlarmPair]
    rules: Sequence[RuleComparison]
    noisiest: Sequence[tuple[str, str, int]]
    """Owner, key and number of alarms of the series with the most alarms."""
    days: float

    @property
    def kinds(self) -> Counter[str]:
        return Counter(pair.kind for pair in self.pairs)


def compare(header: RecordingHeader, result: BacktestResult) -> Comparison:
    then = _spans(result.recorded_transitions, header)
    now = _spans(result.replayed_transitions, header)
    pairs = sorted(_pairs(then, now), key=lambda pair: (pair.span.opened_at, *pair.span[:3]))
    days = max((header.until - recorded_since(header)) / timedelta(days=1), 1e-9)
    names = sorted({span.rule for span in chain(then, now)})
    alarm_counts = Counter((span.owner, span.key) for span in now)
    return Comparison(
        then,
        now,
        pairs,
        [_compare_rule(name, pairs, result, days) for name in names],
        [(*series, count) for series, count in sorted(alarm_counts.items(), key=_most_first)[:_NOISIEST]],
        days,
    )


def recorded_since(header: RecordingHeader) -> datetime:
    """The start of the window, or the first apply if it is later: without rules there was nothing to
    record."""
    applied_at = min((apply.recorded_at for apply in header.applies), default=header.since)
    return min(max(header.since, applied_at), header.until)


def report_json(
    header: RecordingHeader, result: BacktestResult, compared: Comparison, mode: str
) -> dict[str, Any]:
    return {
        "mode": mode,
        "since": header.since,
        "until": header.until,
        "replayed_from": header.start,
        "decided_until": min(
            (header.horizon("data", horizon.partition) for horizon in header.horizons), default=None
        ),
        "nothing_was_sent": True,
        "owners": result.owners,
        "datapoints": result.datapoints,
        "events": result.events,
        "staleness": result.staleness_count,
        "alarms": {
            "then": len(compared.spans_then),
            "now": len(compared.spans_now),
            **dict(sorted(compared.kinds.items())),
        },
        "rules": [_rule_json(rule) for rule in compared.rules],
        "notifications": [
            {
                "action_rule": action_rule,
                "rule": rule,
                "then": result.recorded_notifications[action_rule, rule],
                "now": result.replayed_notifications[action_rule, rule],
            }
            for action_rule, rule in sorted({*result.recorded_notifications, *result.replayed_notifications})
        ],
        "noisiest": [
            {"owner": owner, "key": key, "alarms": count} for owner, key, count in compared.noisiest
        ],
        "changes": [_change_json(pair) for pair in compared.pairs if pair.kind != "same"],
        "unchanged": [_change_json(pair) for pair in compared.pairs if pair.kind == "same"][:_MOST_UNCHANGED],
        "mismatches": [mismatch._asdict() for mismatch in result.mismatches],
    }


def _rule_json(rule: RuleComparison) -> dict[str, Any]:
    fields = rule._asdict() | {"kinds": dict(sorted(rule.kinds.items()))}
    for name in ("time_then", "time_now"):
        fields[f"{name}_s"] = fields.pop(name).total_seconds()
    return fields


def _change_json(pair: AlarmPair) -> dict[str, Any]:
    return {
        "kind": pair.kind,
        "rule": pair.span.rule,
        "owner": pair.span.owner,
        "then": None if pair.then is None else pair.then.opened_at,
        "then_until": None if pair.then is None else pair.then.ended_at,
        "now": None if pair.now is None else pair.now.opened_at,
        "now_until": None if pair.now is None else pair.now.ended_at,
        "message": pair.span.message,
    }


def _spans(transitions: Iterable[AlarmTransition], header: RecordingHeader) -> list[AlarmSpan]:
    opened: dict[UUID, AlarmTransition] = {}
    spans = []
    for transition in transitions:
        if transition.kind == "opened":
            opened[transition.alarm_id] = transition
        else:
            spans.append(_span(opened.pop(transition.alarm_id, None), transition, header))
    spans += [_span(transition, None, header) for transition in opened.values()]
    return sorted(spans, key=lambda span: (span.opened_at, *span[:3], span.alarm_id))


def _span(
    opened: AlarmTransition | None, resolved: AlarmTransition | None, header: RecordingHeader
) -> AlarmSpan:
    transition = opened or resolved
    assert transition is not None
    return AlarmSpan(
        transition.rule,
        transition.owner,
        str(transition.payload.get("key", "")),
        header.since if opened is None else opened.at,
        header.until if resolved is None else resolved.at,
        transition.alarm_id,
        resolved is None,
        str(transition.payload.get("message", "")),
    )


def _pairs(then: Sequence[AlarmSpan], now: Sequence[AlarmSpan]) -> Iterable[AlarmPair]:
    unpaired = {span.alarm_id: span for span in then}
    new_ids = []
    for span in now:
        recorded = unpaired.pop(span.alarm_id, None)
        if recorded is None:
            new_ids.append(span)
        else:
            yield AlarmPair(_kind(recorded, span), recorded, span)
    by_subject: dict[tuple[str, str], list[AlarmSpan]] = {}
    for recorded in unpaired.values():
        by_subject.setdefault(recorded[:2], []).append(recorded)
    for span in new_ids:
        others = by_subject.get(span[:2], [])
        recorded = next((other for other in others if _overlap(other, span)), None)
        if recorded is None:
            yield AlarmPair("gained", None, span)
        else:
            others.remove(recorded)
            yield AlarmPair(_kind(recorded, span), recorded, span)
    yield from (AlarmPair("lost", recorded, None) for others in by_subject.values() for recorded in others)


def _kind(then: AlarmSpan, now: AlarmSpan) -> ChangeKind:
    if then.opened_at != now.opened_at:
        return "earlier" if now.opened_at < then.opened_at else "later"
    return "same" if then.ended_at == now.ended_at else "ended otherwise"


def _overlap(first: AlarmSpan, second: AlarmSpan) -> bool:
    return first.opened_at <= second.ended_at and second.opened_at <= first.ended_at


def _compare_rule(
    rule: str, pairs: Sequence[AlarmPair], result: BacktestResult, days: float
) -> RuleComparison:
    of_rule = [pair for pair in pairs if pair.span.rule == rule]
    then = [pair.then for pair in of_rule if pair.then is not None]
    now = [pair.now for pair in of_rule if pair.now is not None]
    return RuleComparison(
        rule,
        len(then),
        len(now),
        Counter(pair.kind for pair in of_rule),
        sum((span.ended_at - span.opened_at for span in then), _ZERO),
        sum((span.ended_at - span.opened_at for span in now), _ZERO),
        _notifications(result.recorded_notifications, rule) / days,
        _notifications(result.replayed_notifications, rule) / days,
    )


def _notifications(counts: Counter[tuple[str, str]], rule: str) -> int:
    return sum(count for (_, event_rule), count in counts.items() if event_rule == rule)


def _most_first(item: tuple[tuple[str, str], int]) -> tuple[int, tuple[str, str]]:
    return -item[1], item[0]
