"""The report as one page: no script, no network, light or dark as the reader has it. Pure.

Guarantee: every text from the recording is escaped. The picture has one lane per rule, what happened above what the
replay concludes, and its size is bounded: spans closer than a pixel are drawn as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from html import escape

from rules.backtest.comparison import Comparison, Span
from rules.backtest.facts import Staleness, Story
from rules.backtest.owners import BINS, Found
from schemas.duration import format_duration
from schemas.event import instant_text

_WIDTH = 1000.0
_LEFT = 190.0
_LANE = 34.0
_MOST = 200
_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --quiet: #646a73; --paper: #fbfbfa; --line: #dcdfe4;
  --then: #7a8699; --now: #c2410c; --gap: #b08900; --fire: #2563a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e9eb; --quiet: #9aa1ab; --paper: #16181b; --line: #33373d;
  --then: #8b98ad; --now: #f28c5b; --gap: #d9b64a; --fire: #78aee8; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
p.quiet, figcaption { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; }
figure { margin: 0; overflow-x: auto; } svg { width: 100%; min-width: 40rem; height: auto; }
svg text { fill: var(--ink); font-size: 12px; } svg .quiet { fill: var(--quiet); font-size: 11px; }
.then { fill: var(--then); } .now { fill: var(--now); } .gap { fill: var(--gap); } .fire { fill: var(--fire); }
svg line { stroke: var(--line); }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; border-radius: 2px; }
"""


def report_page(story: Story, found: Found, compared: Comparison, mode: str) -> str:
    window = f"{instant_text(story.since)} to {instant_text(story.until)}"
    read = f"{found.datapoints:,} datapoints and {found.events:,} events of {found.owners:,} owners"
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Tocsin backtest</title><style>{_STYLE}</style></head><body>",
        f"<h1>Backtest, {escape(mode)}</h1><p>{window}: {read}.</p>",
        "<p class='quiet'>Replayed from the recording. Nothing was sent and nothing live was touched.</p>",
        _summary(compared, found),
        "<h2>Alarms, gaps and fires</h2>",
        _picture(story, found, compared),
        "<h2>Rules</h2>",
        _rules(compared),
        *_changes(compared),
        *_noisiest(compared),
        *_differences(found),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _summary(compared: Comparison, found: Found) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(compared.kinds.items())) or "none"
    then = sum(found.pages_then.values()) / compared.days
    now = sum(found.pages_now.values()) / compared.days
    return (
        f"<p><b>{len(compared.spans_then):,}</b> alarms then, <b>{len(compared.spans_now):,}</b> now: {kinds}. "
        f"Pages a day: <b>{then:,.1f}</b> then, <b>{now:,.1f}</b> now. Gaps: "
        f"<b>{sum(one.verdict == 'stale' for one in found.gaps):,}</b>.</p>"
    )


def _picture(story: Story, found: Found, compared: Comparison) -> str:
    rules = [line.rule for line in compared.rules][:_MOST]
    schedules = sorted({schedule for schedule, _ in found.fires})[:_MOST]
    gaps = _gaps(found.gaps, story)
    lanes: list[str] = []
    top = 24.0
    for rule in rules:
        then = [span for span in compared.spans_then if span.rule == rule]
        now = [span for span in compared.spans_now if span.rule == rule]
        bars = _bars(_of(then), story, top + 3, "then") + _bars(_of(now), story, top + 16, "now")
        lanes.append(_lane(rule, f"{len(then):,} then, {len(now):,} now", top) + bars)
        top += _LANE
    if gaps:
        lanes.append(_lane("gaps", f"{len(gaps):,} silences", top) + _bars(gaps, story, top + 10, "gap"))
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
    shown = name if len(name) <= 26 else f"{name[:25]}…"
    return (
        f"<text x='0' y='{top + 13:.0f}'>{escape(shown)}<title>{escape(name)}</title></text>"
        f"<text class='quiet' x='0' y='{top + 27:.0f}'>{escape(note)}</text>"
    )


def _bars(spans: Sequence[tuple[datetime, datetime, str]], story: Story, y: float, kind: str) -> str:
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


def _ticks(places: Iterable[int], y: float) -> str:
    return "".join(
        f"<rect class='fire' x='{_LEFT + _WIDTH * place / BINS:.1f}' y='{y:.0f}' width='1.6' height='14'/>"
        for place in places
    )


def _of(spans: Sequence[Span]) -> list[tuple[datetime, datetime, str]]:
    return [(one.opened_at, one.ended_at, f"{one.owner}: {one.message}") for one in spans]


def _gaps(verdicts: Sequence[Staleness], story: Story) -> list[tuple[datetime, datetime, str]]:
    began: dict[tuple[str, str], datetime] = {}
    found = []
    for one in verdicts:
        series = (one.owner, one.key)
        if one.verdict == "stale":
            began[series] = one.at
        else:
            found.append((began.pop(series, story.since), one.at, f"{one.key} of {one.owner}"))
    return found + [(at, story.until, f"{key} of {owner}") for (owner, key), at in began.items()]


def _x(at: datetime, story: Story) -> float:
    whole = (story.until - story.since) / timedelta(seconds=1) or 1.0
    return _LEFT + _WIDTH * min(max((at - story.since) / timedelta(seconds=1) / whole, 0.0), 1.0)


def _rules(compared: Comparison) -> str:
    heads = ("rule", "then", "now", "changes", "in alarm then", "in alarm now", "pages a day then", "now")
    rows = [
        (
            line.rule,
            f"{line.then:,}",
            f"{line.now:,}",
            ", ".join(f"{count} {kind}" for kind, count in sorted(line.kinds.items()) if kind != "same"),
            format_duration(_seconds(line.time_then)),
            format_duration(_seconds(line.time_now)),
            f"{line.pages_then:,.1f}",
            f"{line.pages_now:,.1f}",
        )
        for line in compared.rules
    ]
    return _table(heads, rows)


def _changes(compared: Comparison) -> list[str]:
    changed = [pair for pair in compared.pairs if pair.kind != "same"]
    rows = [
        (
            pair.kind,
            pair.span.rule,
            pair.span.owner,
            "" if pair.then is None else instant_text(pair.then.opened_at),
            "" if pair.now is None else instant_text(pair.now.opened_at),
            pair.span.message,
        )
        for pair in changed[:_MOST]
    ]
    heads = ("change", "rule", "owner", "then", "now", "message")
    more = f"<p class='quiet'>and {len(changed) - _MOST:,} more</p>" if len(changed) > _MOST else ""
    return ["<h2>What would be different</h2>", _table(heads, rows), more] if rows else []


def _noisiest(compared: Comparison) -> list[str]:
    rows = [(owner, key, f"{count:,}") for owner, key, count in compared.noisiest]
    return ["<h2>The noisiest series</h2>", _table(("owner", "series", "alarms"), rows)] if rows else []


def _differences(found: Found) -> list[str]:
    rows = [(one.owner, one.what, one.recorded, one.replayed, one.cause) for one in found.differences[:_MOST]]
    heads = ("owner", "rule or series", "recorded", "replayed", "cause")
    return ["<h2>Differences from the record</h2>", _table(heads, rows)] if rows else []


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _seconds(span: timedelta) -> timedelta:
    return timedelta(seconds=round(span.total_seconds()))
