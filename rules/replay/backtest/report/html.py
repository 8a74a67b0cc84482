"""Writes the report as one HTML file, without scripts and without access to the network.

Guarantee: every text from the recording is escaped, and tables have a bounded number of rows.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from html import escape
from zoneinfo import ZoneInfo

from rules.replay.backtest.recording.model import RecordingHeader
from rules.replay.backtest.report.compare import AlarmSpan, Comparison
from rules.replay.backtest.report.timeline_svg import timeline_svg
from rules.replay.backtest.result import BacktestResult
from schemas.values.duration import format_duration
from tocsin.core.instant import instant_text
from tocsin.pictures.compare import ComparedAlarm, CompareLane, Period, compare_lanes
from tocsin.pictures.figure import read_style
from tocsin.pictures.time_axis import TimeView

_MAX_ROWS = 200
_STYLE = """
:root { color-scheme: light dark; --ink: var(--pic-ink); --quiet: var(--pic-quiet); --paper: var(--pic-paper);
  --line: var(--pic-grid); --then: var(--pic-then); --now: var(--pic-now); --stale: var(--pic-late);
  --fire: var(--pic-accent); }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
p.quiet, figcaption { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; }
td:not(:last-child) { white-space: nowrap; }
figure { margin: 0; overflow-x: auto; } svg { width: 100%; min-width: 40rem; height: auto; }
.whole svg text { fill: var(--ink); font-size: 12px; } .whole svg .quiet { fill: var(--quiet); font-size: 11px; }
.whole .then { fill: var(--then); } .whole .now { fill: var(--now); } .whole .stale { fill: var(--stale); }
.whole .fire { fill: var(--fire); } .whole svg line { stroke: var(--line); }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; border-radius: 2px; }
"""


def html_report(header: RecordingHeader, result: BacktestResult, compared: Comparison, mode: str) -> str:
    window = f"{instant_text(header.since)} to {instant_text(header.until)}"
    read = f"{result.datapoints:,} datapoints and {result.events:,} events of {result.owners:,} owners"
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Tocsin backtest</title><style>{read_style()}{_STYLE}</style></head><body>",
        f"<h1>Backtest, {escape(mode)}</h1><p>{window}: {read}.</p>",
        "<p class='quiet'>Replayed from the recording. Nothing was sent and nothing live was touched.</p>",
        _summary(compared, result),
        "<h2>Alarms, stale series and fires</h2>",
        f"<div class='whole'>{timeline_svg(header, result, compared)}</div>",
        *_changed_lanes(header, compared),
        "<h2>Rules</h2>",
        _rules(compared),
        *_changes(compared),
        *_noisiest(compared),
        *_mismatches(result),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _summary(compared: Comparison, result: BacktestResult) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(compared.kinds.items())) or "none"
    then = sum(result.recorded_notifications.values()) / compared.days
    now = sum(result.replayed_notifications.values()) / compared.days
    stale = sum(change.kind == "stale" for change in result.replayed_staleness)
    return (
        f"<p><b>{len(compared.spans_then):,}</b> alarms then, <b>{len(compared.spans_now):,}</b> now: {kinds}. "
        f"Notifications a day: <b>{then:,.1f}</b> then, <b>{now:,.1f}</b> now. "
        f"Series became stale <b>{stale:,}</b> times.</p>"
    )


def _rules(compared: Comparison) -> str:
    heads = (
        "rule",
        "then",
        "now",
        "changes",
        "in alarm then",
        "in alarm now",
        "notifications a day then",
        "now",
    )
    rows = [
        (
            rule.rule,
            f"{rule.then:,}",
            f"{rule.now:,}",
            ", ".join(f"{count} {kind}" for kind, count in sorted(rule.kinds.items()) if kind != "same"),
            format_duration(_seconds(rule.time_then)),
            format_duration(_seconds(rule.time_now)),
            f"{rule.notifications_then:,.1f}",
            f"{rule.notifications_now:,.1f}",
        )
        for rule in compared.rules
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
        for pair in changed[:_MAX_ROWS]
    ]
    heads = ("change", "rule", "owner", "then", "now", "message")
    more = f"<p class='quiet'>and {len(changed) - _MAX_ROWS:,} more</p>" if len(changed) > _MAX_ROWS else ""
    return ["<h2>Changes</h2>", _table(heads, rows), more] if rows else []


def _changed_lanes(header: RecordingHeader, compared: Comparison) -> list[str]:
    """Each rule and owner whose alarms differ, then and now in one lane."""
    lanes: dict[str, list[ComparedAlarm]] = {}
    for pair in compared.pairs:
        name = f"{pair.span.rule} of {pair.span.owner}" if pair.span.owner else pair.span.rule
        lanes.setdefault(name, []).append(ComparedAlarm(pair.kind, _period(pair.then), _period(pair.now)))
    changed = [
        CompareLane(name, alarms)
        for name, alarms in lanes.items()
        if any(alarm.change != "same" for alarm in alarms)
    ]
    if not changed:
        return []
    view = TimeView(header.since, header.until, ZoneInfo("UTC"))
    return ["<h2>What differs</h2>", str(compare_lanes(changed, view, title="alarms that differ"))]


def _period(span: AlarmSpan | None) -> Period | None:
    return None if span is None else Period(span.opened_at, span.ended_at, span.message)


def _noisiest(compared: Comparison) -> list[str]:
    rows = [(owner, key, f"{count:,}") for owner, key, count in compared.noisiest]
    return ["<h2>The noisiest series</h2>", _table(("owner", "series", "alarms"), rows)] if rows else []


def _mismatches(result: BacktestResult) -> list[str]:
    rows = [
        (mismatch.owner, mismatch.what, mismatch.recorded, mismatch.replayed, mismatch.cause)
        for mismatch in result.mismatches[:_MAX_ROWS]
    ]
    heads = ("owner", "rule or series", "recorded", "replayed", "cause")
    return ["<h2>Mismatches with the recording</h2>", _table(heads, rows)] if rows else []


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _seconds(span: timedelta) -> timedelta:
    return timedelta(seconds=round(span.total_seconds()))
