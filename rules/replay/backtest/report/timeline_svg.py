"""The timeline of a report: a lane for each rule, what happened above what the replay concludes; gaps and fires. Pure.

Guarantee: its size is bounded, whatever the number of alarms. A few are drawn one by one, with their words; many as how
many there were at a time, so that a thousand owners do not look like one alarm without an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from html import escape
from itertools import accumulate, groupby

from rules.replay.backtest.owner_replay import BINS, Found
from rules.replay.backtest.recording.model import Staleness, Story
from rules.replay.backtest.report.compare import Comparison, Span

_WIDTH = 1000.0
_LEFT = 190.0
_LANE = 34.0
_MOST = 200
_MOST_BARS = 40
_COLUMNS = 400
_HEIGHT = 11

_Bar = tuple[datetime, datetime, str]


def picture(story: Story, found: Found, compared: Comparison) -> str:
    rules = [line.rule for line in compared.rules][:_MOST]
    schedules = sorted({schedule for schedule, _ in found.fires})[:_MOST]
    gaps = _gaps(found.gaps, story)
    lanes: list[str] = []
    top = 24.0
    for rule in rules:
        then, now = _of(compared.spans_then, rule), _of(compared.spans_now, rule)
        strips = _strips(story, [("then", then, top + 3), ("now", now, top + 16)])
        lanes.append(_lane(rule, f"{len(then):,} then, {len(now):,} now", top) + strips)
        top += _LANE
    if gaps:
        strips = _strips(story, [("gap", gaps, top + 10)])
        lanes.append(_lane("gaps", f"{len(gaps):,} silences", top) + strips)
        top += _LANE
    for schedule in schedules:
        at = sorted(place for name, place in found.fires if name == schedule)
        count = sum(found.fires[schedule, place] for place in at)
        lanes.append(_lane(schedule, f"{count:,} fires", top) + _ticks(at, top + 8))
        top += _LANE
    legend = "".join(
        f"<span class='key' style='background:var(--{name})'></span>{text}"
        for name, text in (("then", "then"), ("now", "now"), ("gap", "no data"), ("fire", "schedule fired"))
    )
    drawn = "".join(lanes) or f"<text x='{_LEFT}' y='40'>nothing happened</text>"
    return (
        f"<figure><svg viewBox='0 0 {_LEFT + _WIDTH + 10:.0f} {top + 10:.0f}' role='img' "
        f"aria-label='timeline of alarms'>{_axis(story, top)}{drawn}</svg><figcaption>{legend}</figcaption></figure>"
    )


def _axis(story: Story, bottom: float) -> str:
    parts = []
    for place in range(5):
        at = story.since + (story.until - story.since) * place / 4
        x = _LEFT + _WIDTH * place / 4
        anchor = ("start", "middle", "middle", "middle", "end")[place]
        parts.append(
            f"<line x1='{x:.1f}' y1='16' x2='{x:.1f}' y2='{bottom:.0f}'/>"
            f"<text class='quiet' x='{x:.1f}' y='12' text-anchor='{anchor}'>{at:%m-%d %H:%M}</text>"
        )
    return "".join(parts)


def _lane(name: str, note: str, top: float) -> str:
    shown = name if len(name) <= 28 else f"{name[:14]}…{name[-13:]}"
    return (
        f"<text x='0' y='{top + 13:.0f}'>{escape(shown)}<title>{escape(name)}</title></text>"
        f"<text class='quiet' x='0' y='{top + 27:.0f}'>{escape(note)}</text>"
    )


def _strips(story: Story, strips: Sequence[tuple[str, Sequence[_Bar], float]]) -> str:
    if all(len(bars) <= _MOST_BARS for _, bars, _ in strips):
        return "".join(_bars(bars, story, y, kind) for kind, bars, y in strips)
    counts = [_counts(bars, story) for _, bars, _ in strips]
    most = max(map(max, counts))
    return "".join(_density(count, most, y, kind) for (kind, _, y), count in zip(strips, counts, strict=True))


def _bars(spans: Sequence[_Bar], story: Story, y: float, kind: str) -> str:
    """Each with its text, but what falls on the same pixels is one bar with a count."""
    drawn: list[tuple[float, float, str, int]] = []
    for begin, end, text in sorted(spans):
        left, right = _x(begin, story), max(_x(end, story), _x(begin, story) + 1.5)
        if drawn and left - drawn[-1][1] < 0.5:
            first, last, told, count = drawn[-1]
            drawn[-1] = (first, max(last, right), told, count + 1)
        else:
            drawn.append((left, right, text, 1))
    return "".join(
        f"<rect class='{kind}' x='{left:.1f}' y='{y:.0f}' width='{right - left:.1f}' height='11' rx='1.5'>"
        f"<title>{escape(text if count == 1 else f'{text} and {count - 1} more')}</title></rect>"
        for left, right, text, count in drawn
    )


def _counts(bars: Sequence[_Bar], story: Story) -> list[int]:
    """How many fall into each column."""
    changes = [0] * (_COLUMNS + 1)
    for begin, end, _ in bars:
        changes[_column(begin, story)] += 1
        changes[_column(end, story) + 1] -= 1
    return list(accumulate(changes))[:_COLUMNS]


def _density(counts: Sequence[int], most: int, y: float, kind: str) -> str:
    bottom = y + _HEIGHT
    wide = _WIDTH / _COLUMNS
    path = f"M{_LEFT:.0f} {bottom:.0f}"
    column = 0
    for count, run in groupby(counts):
        column += len(list(run))
        high = max(_HEIGHT * count / most, 1.0) if count else 0.0
        path += f"V{bottom - high:.1f}H{_LEFT + wide * column:.1f}"
    return f"<path class='{kind}' d='{path}V{bottom:.0f}Z'><title>at most {max(counts):,} at a time</title></path>"


def _column(at: datetime, story: Story) -> int:
    return min(int((_x(at, story) - _LEFT) / _WIDTH * _COLUMNS), _COLUMNS - 1)


def _ticks(places: Iterable[int], y: float) -> str:
    return "".join(
        f"<rect class='fire' x='{_LEFT + _WIDTH * place / BINS:.1f}' y='{y:.0f}' width='1.6' height='14'/>"
        for place in places
    )


def _of(spans: Sequence[Span], rule: str) -> list[_Bar]:
    return [(one.opened_at, one.ended_at, f"{one.owner}: {one.message}") for one in spans if one.rule == rule]


def _gaps(verdicts: Sequence[Staleness], story: Story) -> list[_Bar]:
    began: dict[tuple[str, str], datetime] = {}
    found = []
    for one in verdicts:
        series = (one.owner, one.key)
        if one.kind == "stale":
            began[series] = one.at
        else:
            found.append((began.pop(series, story.since), one.at, f"{one.key} of {one.owner}"))
    return found + [(at, story.until, f"{key} of {owner}") for (owner, key), at in began.items()]


def _x(at: datetime, story: Story) -> float:
    whole = (story.until - story.since) / timedelta(seconds=1) or 1.0
    return _LEFT + _WIDTH * min(max((at - story.since) / timedelta(seconds=1) / whole, 0.0), 1.0)
