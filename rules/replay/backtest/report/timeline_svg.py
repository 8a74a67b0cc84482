"""Draws the timeline of a report as SVG: recorded and replayed alarms, stale series and fires.

Guarantee: its size is bounded for any number of alarms. A few alarms are drawn one by one with
their messages. Many are drawn as the number at a time, so that a thousand owners do not look like
one endless alarm.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from html import escape
from itertools import accumulate, groupby

from rules.replay.backtest.recording.model import CalculatedChange, RecordingHeader
from rules.replay.backtest.report.compare import AlarmSpan, Comparison
from rules.replay.backtest.result import BINS, BacktestResult

_WIDTH = 1000.0
_LEFT = 190.0
_LANE = 34.0
_MAX_NAMES = 200
_MAX_BARS = 40
_COLUMNS = 400
_HEIGHT = 11

_Bar = tuple[datetime, datetime, str]


def timeline_svg(header: RecordingHeader, result: BacktestResult, compared: Comparison) -> str:
    rules = [rule.rule for rule in compared.rules][:_MAX_NAMES]
    schedules = sorted({schedule for schedule, _ in result.fires})[:_MAX_NAMES]
    stale = _stale_bars(result.replayed_staleness, header)
    lanes: list[str] = []
    top = 24.0
    for rule in rules:
        then, now = _alarm_bars(compared.spans_then, rule), _alarm_bars(compared.spans_now, rule)
        strips = _strips(header, [("then", then, top + 3), ("now", now, top + 16)])
        lanes.append(_lane(rule, f"{len(then):,} then, {len(now):,} now", top) + strips)
        top += _LANE
    if stale:
        strips = _strips(header, [("stale", stale, top + 10)])
        lanes.append(_lane("stale series", f"{len(stale):,} times", top) + strips)
        top += _LANE
    for schedule in schedules:
        bins = sorted(number for name, number in result.fires if name == schedule)
        count = sum(result.fires[schedule, number] for number in bins)
        lanes.append(_lane(schedule, f"{count:,} fires", top) + _ticks(bins, top + 8))
        top += _LANE
    legend = "".join(
        f"<span class='key' style='background:var(--{name})'></span>{text}"
        for name, text in (("then", "then"), ("now", "now"), ("stale", "stale"), ("fire", "schedule fired"))
    )
    drawn = "".join(lanes) or f"<text x='{_LEFT}' y='40'>nothing happened</text>"
    return (
        f"<figure><svg viewBox='0 0 {_LEFT + _WIDTH + 10:.0f} {top + 10:.0f}' role='img' "
        f"aria-label='timeline of alarms'>{_axis(header, top)}{drawn}</svg><figcaption>{legend}</figcaption></figure>"
    )


def _axis(header: RecordingHeader, bottom: float) -> str:
    parts = []
    for tick in range(5):
        at = header.since + (header.until - header.since) * tick / 4
        x = _LEFT + _WIDTH * tick / 4
        anchor = ("start", "middle", "middle", "middle", "end")[tick]
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


def _strips(header: RecordingHeader, strips: Sequence[tuple[str, Sequence[_Bar], float]]) -> str:
    if all(len(bars) <= _MAX_BARS for _, bars, _ in strips):
        return "".join(_bars(bars, header, y, kind) for kind, bars, y in strips)
    counts = [_counts(bars, header) for _, bars, _ in strips]
    most = max(map(max, counts))
    return "".join(_density(count, most, y, kind) for (kind, _, y), count in zip(strips, counts, strict=True))


def _bars(spans: Sequence[_Bar], header: RecordingHeader, y: float, kind: str) -> str:
    """Bars with their texts. Those that share pixels are merged into one bar with a count."""
    drawn: list[tuple[float, float, str, int]] = []
    for begin, end, text in sorted(spans):
        left, right = _x(begin, header), max(_x(end, header), _x(begin, header) + 1.5)
        if drawn and left - drawn[-1][1] < 0.5:
            first, last, first_text, count = drawn[-1]
            drawn[-1] = (first, max(last, right), first_text, count + 1)
        else:
            drawn.append((left, right, text, 1))
    return "".join(
        f"<rect class='{kind}' x='{left:.1f}' y='{y:.0f}' width='{right - left:.1f}' height='11' rx='1.5'>"
        f"<title>{escape(text if count == 1 else f'{text} and {count - 1} more')}</title></rect>"
        for left, right, text, count in drawn
    )


def _counts(bars: Sequence[_Bar], header: RecordingHeader) -> list[int]:
    """The number of bars in each column."""
    changes = [0] * (_COLUMNS + 1)
    for begin, end, _ in bars:
        changes[_column(begin, header)] += 1
        changes[_column(end, header) + 1] -= 1
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


def _column(at: datetime, header: RecordingHeader) -> int:
    return min(int((_x(at, header) - _LEFT) / _WIDTH * _COLUMNS), _COLUMNS - 1)


def _ticks(bins: Iterable[int], y: float) -> str:
    return "".join(
        f"<rect class='fire' x='{_LEFT + _WIDTH * number / BINS:.1f}' y='{y:.0f}' width='1.6' height='14'/>"
        for number in bins
    )


def _alarm_bars(spans: Sequence[AlarmSpan], rule: str) -> list[_Bar]:
    return [
        (span.opened_at, span.ended_at, f"{span.owner}: {span.message}")
        for span in spans
        if span.rule == rule
    ]


def _stale_bars(changes: Sequence[CalculatedChange], header: RecordingHeader) -> list[_Bar]:
    stale_since: dict[tuple[str, str], datetime] = {}
    bars = []
    for change in changes:
        series = (change.owner, change.key)
        if change.kind == "stale":
            stale_since[series] = change.at
        else:
            began = stale_since.pop(series, header.since)
            bars.append((began, change.at, f"{change.key} of {change.owner}"))
    return bars + [(at, header.until, f"{key} of {owner}") for (owner, key), at in stale_since.items()]


def _x(at: datetime, header: RecordingHeader) -> float:
    whole = (header.until - header.since) / timedelta(seconds=1) or 1.0
    return _LEFT + _WIDTH * min(max((at - header.since) / timedelta(seconds=1) / whole, 0.0), 1.0)
