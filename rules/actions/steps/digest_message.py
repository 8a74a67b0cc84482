"""Builds the message of a digest from the texts of its document. Defaults replace the texts that
the document leaves out. Pure: no I/O.

The default has the counts in the subject and one list for each query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from rules.actions.steps.due_step import DueStep
from rules.actions.steps.messages import event_title, fill_message
from rules.delivery.alarm_facts import UTC_VIEW, MessageView
from rules.delivery.message import Message
from schemas.documents.runbook.digest import DigestStep
from tocsin.core.instant import instant_text

_TITLES = {"open_alarms": "open alarms", "events": "events", "stale_series": "stale series"}


def digest_message(
    step: DueStep, digest: DigestStep, results: Mapping[str, Any], view: MessageView = UTC_VIEW
) -> Message:
    """`results` has the rows of each query under its name, and `counts`."""
    templates = {"subject": digest.subject, "text": digest.text, "html": digest.html}
    return fill_message(_default(results, view), templates, {**step.data, **results})


def _default(results: Mapping[str, Any], view: MessageView) -> Message:
    sections = {
        f"{_TITLES[query]}: {count}": list(_section_lines(query, results[query], count))
        for query, count in results["counts"].items()
    }
    subject = ", ".join(sections)
    text = "\n".join(
        "\n".join([title, *(f"  {line}" for line in lines)]) + "\n" for title, lines in sections.items()
    )
    html = "\n".join(
        f"<h3>{escape(title)}</h3>\n<ul>\n{''.join(f'<li>{escape(line)}</li>' for line in lines)}\n</ul>"
        for title, lines in sections.items()
    )
    payload = {"type": "digest", "counts": dict(results["counts"]), "text": text}
    return Message(subject, text, html=html, payload=payload)


def _section_lines(query: str, rows: Sequence[Mapping[str, Any]], count: int) -> Iterator[str]:
    for row in rows:
        yield _LINE_OF[query](row)
    if count > len(rows):
        yield f"and {count - len(rows)} more"


def _alarm_line(row: Mapping[str, Any]) -> str:
    parts = [f"[{row['severity'].upper()}] {row['rule']}{_owner_suffix(row)} since {_instant(row['since'])}"]
    if row["acknowledged"]:
        parts.append(f", acknowledged by {row['acknowledged_by']}")
    if row["message"]:
        parts.append(f": {row['message']}")
    return "".join(parts)


def _event_line(row: Mapping[str, Any]) -> str:
    return f"{_instant(row['ts'])} {event_title(row)}"


def _series_line(row: Mapping[str, Any]) -> str:
    return f"{row['key']}{_owner_suffix(row)} since {_instant(row['stale_since'])}, last {row['value']}"


_LINE_OF = {"open_alarms": _alarm_line, "events": _event_line, "stale_series": _series_line}


def _owner_suffix(row: Mapping[str, Any]) -> str:
    return f" ({row['owner']})" if row["owner"] else ""


def _instant(at: datetime) -> str:
    return instant_text(at.replace(microsecond=0))
