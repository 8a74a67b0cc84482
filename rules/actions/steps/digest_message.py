"""A digest as it reads when nobody wrote a text for it: counts in the subject, one list for each query. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from rules.delivery.message import Message
from tocsin.core.instant import instant_text

_TITLES = {"open_alarms": "open alarms", "events": "events", "stale_series": "stale series"}


def digest_message(found: Mapping[str, Any]) -> Message:
    """`found` has the rows of each query under its name, and `counts`."""
    sections = {
        f"{_TITLES[query]}: {count}": list(_lines(query, found[query], count))
        for query, count in found["counts"].items()
    }
    subject = ", ".join(sections)
    text = "\n".join(
        "\n".join([title, *(f"  {line}" for line in lines)]) + "\n" for title, lines in sections.items()
    )
    html = "\n".join(
        f"<h3>{escape(title)}</h3>\n<ul>\n{''.join(f'<li>{escape(line)}</li>' for line in lines)}\n</ul>"
        for title, lines in sections.items()
    )
    payload = {"type": "digest", "counts": dict(found["counts"]), "text": text}
    return Message(subject, text, html=html, payload=payload)


def _lines(query: str, rows: Sequence[Mapping[str, Any]], count: int) -> Iterator[str]:
    for row in rows:
        yield _LINES[query](row)
    if count > len(rows):
        yield f"and {count - len(rows)} more"


def _alarm(row: Mapping[str, Any]) -> str:
    acknowledged = f", acknowledged by {row['acknowledged_by']}" if row["acknowledged"] else ""
    message = f": {row['message']}" if row["message"] else ""
    return f"[{row['severity'].upper()}] {row['rule']}{_of(row)} since {_instant(row['since'])}{acknowledged}{message}"


def _event(row: Mapping[str, Any]) -> str:
    name = row["schedule"] or row["rule"] or row["action"]
    return f"{_instant(row['ts'])} {row['type']}{f' {name}' if name else ''}{_of(row)}"


def _series(row: Mapping[str, Any]) -> str:
    return f"{row['key']}{_of(row)} since {_instant(row['stale_since'])}, last {row['value']}"


_LINES = {"open_alarms": _alarm, "events": _event, "stale_series": _series}


def _of(row: Mapping[str, Any]) -> str:
    return f" ({row['owner']})" if row["owner"] else ""


def _instant(at: datetime) -> str:
    return instant_text(at.replace(microsecond=0))
