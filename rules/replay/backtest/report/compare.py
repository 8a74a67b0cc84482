"""Alarms as they were and as the rules that are tried would have made them, side by side. Pure.

Guarantee: each alarm is counted once. Two are the same incident if they have the same id, or are of the same rule and
owner and overlap; what has no partner is gained or lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Literal, NamedTuple
from uuid import UUID

from rules.replay.backtest.owner_replay import Found
from rules.replay.backtest.recording.model import Edge, Story

Kind = Literal["gained", "lost", "earlier", "later", "ended otherwise", "same"]
_NOISIEST = 10
_ZERO = timedelta(0)


class Span(NamedTuple):
    """An alarm in the window. One that was open at its beginning begins there, one that is still open ends with it."""

    rule: str
    owner: str
    key: str
    opened_at: datetime
    ended_at: datetime
    alarm_id: UUID
    is_open: bool
    message: str


class Pair(NamedTuple):
    kind: Kind
    then: Span | None
    now: Span | None

    @property
    def span(self) -> Span:
        one = self.now or self.then
        assert one is not None
        return one


class RuleLine(NamedTuple):
    rule: str
    then: int
    now: int
    kinds: Counter[str]
    time_then: timedelta
    time_now: timedelta
    pages_then: float
    """A day."""
    pages_now: float


class Comparison(NamedTuple):
    spans_then: Sequence[Span]
    spans_now: Sequence[Span]
    pairs: Sequence[Pair]
    rules: Sequence[RuleLine]
    noisiest: Sequence[tuple[str, str, int]]
    """Owner, series, openings."""
    days: float

    @property
    def kinds(self) -> Counter[str]:
        return Counter(pair.kind for pair in self.pairs)


def compare(story: Story, found: Found) -> Comparison:
    then, now = _spans(found.then, story), _spans(found.now, story)
    pairs = sorted(_pairs(then, now), key=lambda pair: (pair.span.opened_at, *pair.span[:3]))
    days = max((story.until - story.since) / timedelta(days=1), 1e-9)
    names = sorted({span.rule for span in chain(then, now)})
    noisy = Counter((span.owner, span.key) for span in now)
    return Comparison(
        then,
        now,
        pairs,
        [_line(name, pairs, found, days) for name in names],
        [(*series, count) for series, count in sorted(noisy.items(), key=_loudest)[:_NOISIEST]],
        days,
    )


def as_json(story: Story, found: Found, compared: Comparison, mode: str) -> dict[str, Any]:
    return {
        "mode": mode,
        "since": story.since,
        "until": story.until,
        "replayed_from": story.start,
        "decided_until": min((story.horizon("data", one.partition) for one in story.horizons), default=None),
        "nothing_was_sent": True,
        "owners": found.owners,
        "datapoints": found.datapoints,
        "events": found.events,
        "staleness": found.staleness,
        "alarms": {
            "then": len(compared.spans_then),
            "now": len(compared.spans_now),
            **dict(sorted(compared.kinds.items())),
        },
        "rules": [_line_json(line) for line in compared.rules],
        "pages": [
            {
                "action_rule": page,
                "rule": rule,
                "then": found.pages_then[page, rule],
                "now": found.pages_now[page, rule],
            }
            for page, rule in sorted({*found.pages_then, *found.pages_now})
        ],
        "noisiest": [
            {"owner": owner, "key": key, "alarms": count} for owner, key, count in compared.noisiest
        ],
        "changes": [
            {
                "kind": pair.kind,
                "rule": pair.span.rule,
                "owner": pair.span.owner,
                "then": None if pair.then is None else pair.then.opened_at,
                "now": None if pair.now is None else pair.now.opened_at,
            }
            for pair in compared.pairs
            if pair.kind != "same"
        ],
        "differences": [one._asdict() for one in found.differences],
    }


def _line_json(line: RuleLine) -> dict[str, Any]:
    told = line._asdict() | {"kinds": dict(sorted(line.kinds.items()))}
    for name in ("time_then", "time_now"):
        told[f"{name}_s"] = told.pop(name).total_seconds()
    return told


def _spans(edges: Iterable[Edge], story: Story) -> list[Span]:
    opened: dict[UUID, Edge] = {}
    spans = []
    for edge in edges:
        if edge.edge == "opened":
            opened[edge.alarm_id] = edge
        else:
            spans.append(_span(opened.pop(edge.alarm_id, None), edge, story))
    spans += [_span(edge, None, story) for edge in opened.values()]
    return sorted(spans, key=lambda span: (span.opened_at, *span[:3], span.alarm_id))


def _span(opened: Edge | None, ended: Edge | None, story: Story) -> Span:
    one = opened or ended
    assert one is not None
    return Span(
        one.rule,
        one.owner,
        str(one.payload.get("key", "")),
        story.since if opened is None else opened.at,
        story.until if ended is None else ended.at,
        one.alarm_id,
        ended is None,
        str(one.payload.get("message", "")),
    )


def _pairs(then: Sequence[Span], now: Sequence[Span]) -> Iterable[Pair]:
    left = {span.alarm_id: span for span in then}
    rest = []
    for span in now:
        was = left.pop(span.alarm_id, None)
        if was is None:
            rest.append(span)
        else:
            yield Pair(_kind(was, span), was, span)
    of_subject: dict[tuple[str, str], list[Span]] = {}
    for was in left.values():
        of_subject.setdefault(was[:2], []).append(was)
    for span in rest:
        others = of_subject.get(span[:2], [])
        was = next((one for one in others if _overlap(one, span)), None)
        if was is None:
            yield Pair("gained", None, span)
        else:
            others.remove(was)
            yield Pair(_kind(was, span), was, span)
    yield from (Pair("lost", was, None) for others in of_subject.values() for was in others)


def _kind(was: Span, is_: Span) -> Kind:
    if was.opened_at != is_.opened_at:
        return "earlier" if is_.opened_at < was.opened_at else "later"
    return "same" if was.ended_at == is_.ended_at else "ended otherwise"


def _overlap(one: Span, other: Span) -> bool:
    return one.opened_at <= other.ended_at and other.opened_at <= one.ended_at


def _line(rule: str, pairs: Sequence[Pair], found: Found, days: float) -> RuleLine:
    of_rule = [pair for pair in pairs if pair.span.rule == rule]
    then = [pair.then for pair in of_rule if pair.then is not None]
    now = [pair.now for pair in of_rule if pair.now is not None]
    return RuleLine(
        rule,
        len(then),
        len(now),
        Counter(pair.kind for pair in of_rule),
        sum((span.ended_at - span.opened_at for span in then), _ZERO),
        sum((span.ended_at - span.opened_at for span in now), _ZERO),
        sum(count for (_, about), count in found.pages_then.items() if about == rule) / days,
        sum(count for (_, about), count in found.pages_now.items() if about == rule) / days,
    )


def _loudest(item: tuple[tuple[str, str], int]) -> tuple[int, tuple[str, str]]:
    return -item[1], item[0]
