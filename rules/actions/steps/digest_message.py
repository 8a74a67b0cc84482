"""Builds the message of a digest from the texts of its document. Defaults replace the texts that
the document leaves out. Pure: no I/O.

The default has the totals in the subject, a table with one line for each rule, and one list for
each other query. Empty lists of undelivered notifications and dead runs are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from rules.actions.steps.due_step import DueStep
from rules.actions.steps.messages import event_title, fill_message
from rules.delivery import mail_page
from rules.delivery.alarm_facts import UTC_VIEW, MessageView
from rules.delivery.alarm_message import cut
from rules.delivery.message import Message
from schemas.documents.runbook.digest import DigestStep
from schemas.values.duration import format_duration
from tocsin.core.instant import instant_text

_NOUNS = {
    "summary": ("alarm", "alarms"),
    "open_alarms": ("open", "open"),
    "events": ("event", "events"),
    "stale_series": ("stale series", "stale series"),
    "undelivered": ("undelivered notification", "undelivered notifications"),
    "dead_runs": ("dead run", "dead runs"),
}
_TITLES = {
    "summary": "Alarms",
    "open_alarms": "Open alarms",
    "events": "Events",
    "stale_series": "Stale series",
    "undelivered": "Undelivered notifications",
    "dead_runs": "Dead runs",
}
_ONLY_IF_ANY = ("undelivered", "dead_runs")
_SUMMARY_COLUMNS = ("Rule", "Alarms", "Open", "Time in alarm", "Longest", "Acknowledged after")
_WELL, _ATTENTION = "#15803d", "#dc2626"
_MAX_LINE_LENGTH = 200


class _Section(NamedTuple):
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def digest_message(
    step: DueStep, digest: DigestStep, results: Mapping[str, Any], view: MessageView = UTC_VIEW
) -> Message:
    """`results` are those of `digest_results`."""
    templates = {"subject": digest.subject, "text": digest.text, "html": digest.html}
    return fill_message(default_digest(results, view), templates, {**step.data, **results})


def default_digest(results: Mapping[str, Any], view: MessageView) -> Message:
    counts = {
        query: count for query, count in results["counts"].items() if count or query not in _ONLY_IF_ANY
    }
    subject = f"Digest: {', '.join(_count_text(query, count) for query, count in counts.items())}"
    period = results["period"]
    span = f"{view.instant(period['since'])} to {view.instant(period['until'])}"
    sections = [_section(query, results, count, view) for query, count in counts.items()]
    needs_attention = any(counts.get(query) for query in ("open_alarms", *_ONLY_IF_ANY))
    return Message(
        subject,
        "\n\n".join([subject, span, *map(_section_text, sections)]) + "\n",
        html=mail_page.page(
            _ATTENTION if needs_attention else _WELL,
            "DIGEST",
            subject.partition(": ")[2],
            [mail_page.paragraph(span, dim=True), *[part for one in sections for part in _section_html(one)]],
        ),
        payload=_payload(results),
    )


def _section(query: str, results: Mapping[str, Any], count: int, view: MessageView) -> _Section:
    rows = results[query]
    if query == "summary":
        owners = ", ".join(f"{row['owner'] or '-'} ({row['count']})" for row in results["noisiest_owners"])
        note = f"Most alarms: {owners}" if owners else ""
        return _Section(
            f"{_TITLES[query]}: {count}", _SUMMARY_COLUMNS, [_summary_cells(row) for row in rows], note
        )
    columns, cells = _COLUMNS[query], _CELLS[query]
    note = f"and {count - len(rows)} more" if count > len(rows) else ""
    return _Section(f"{_TITLES[query]}: {count}", columns, [cells(row, view) for row in rows], note)


def _summary_cells(row: Mapping[str, Any]) -> list[str]:
    waited = row["time_to_acknowledge"]
    return [
        str(row["title"] or row["rule"]),
        str(row["count"]),
        str(row["open"]),
        _whole(row["total"]),
        _whole(row["longest"]),
        _whole(waited) if waited is not None else "-",
    ]


def _alarm_cells(row: Mapping[str, Any], view: MessageView) -> list[str]:
    state = f"acknowledged by {row['acknowledged_by']}" if row["acknowledged"] else row["state"]
    name = f"[{row['severity'].upper()}] {row['title'] or row['rule']}{_owner_suffix(row)}"
    return [name, str(cut(row["message"], _MAX_LINE_LENGTH) or ""), state, view.instant(row["since"])]


def _event_cells(row: Mapping[str, Any], view: MessageView) -> list[str]:
    return [view.instant(row["ts"]), event_title(row)]


def _series_cells(row: Mapping[str, Any], view: MessageView) -> list[str]:
    return [f"{row['key']}{_owner_suffix(row)}", view.instant(row["stale_since"]), f"last {row['value']}"]


def _run_cells(row: Mapping[str, Any], view: MessageView) -> list[str]:
    name = f"{row['rule']} to {row['channel']}" if row["channel"] else f"{row['action']} of {row['rule']}"
    error = str(cut(row["error"], _MAX_LINE_LENGTH) or "")
    return [f"{name}{_owner_suffix(row)}", view.instant(row["ended_at"]), error]


_CELLS = {
    "open_alarms": _alarm_cells,
    "events": _event_cells,
    "stale_series": _series_cells,
    "undelivered": _run_cells,
    "dead_runs": _run_cells,
}
_COLUMNS = {
    "open_alarms": ("Alarm", "Message", "State", "Since"),
    "events": ("Time", "Event"),
    "stale_series": ("Series", "Since", "Value"),
    "undelivered": ("Notification", "Given up", "Error"),
    "dead_runs": ("Run", "Ended", "Error"),
}


def _section_text(section: _Section) -> str:
    lines = [section.title]
    if section.columns == _SUMMARY_COLUMNS and section.rows:
        lines += _aligned([section.columns, *section.rows])
    else:
        lines += [f"  {'  '.join(cell for cell in row if cell)}" for row in section.rows]
    return "\n".join([*lines, *([f"  {section.note}"] if section.note else [])])


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield ("  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))).rstrip()


def _section_html(section: _Section) -> list[str]:
    return [
        mail_page.subheading(section.title),
        mail_page.list_table(section.columns, section.rows),
        mail_page.paragraph(section.note, dim=True),
    ]


def _payload(results: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a webhook: the totals and the summary. Durations are in seconds."""
    period = results["period"]
    summary = [
        {
            **{name: row[name] for name in ("rule", "title", "severity", "count", "open", "acknowledged")},
            "total_s": _seconds(row["total"]),
            "longest_s": _seconds(row["longest"]),
            "time_to_acknowledge_s": _seconds(row["time_to_acknowledge"]),
        }
        for row in results["summary"]
    ]
    return {
        "type": "digest",
        "since": instant_text(period["since"]),
        "until": instant_text(period["until"]),
        "counts": dict(results["counts"]),
        "summary": summary,
        "noisiest_owners": list(results["noisiest_owners"]),
    }


def _count_text(query: str, count: int) -> str:
    return f"{count} {_NOUNS[query][count != 1]}"


def _seconds(duration: timedelta | None) -> int | None:
    return None if duration is None else round(duration.total_seconds())


def _whole(duration: timedelta) -> str:
    return format_duration(timedelta(seconds=round(duration.total_seconds())))


def _owner_suffix(row: Mapping[str, Any]) -> str:
    return f" ({row['owner']})" if row["owner"] else ""
