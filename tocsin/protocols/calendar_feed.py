"""An iCalendar feed (RFC 5545) of coming fires, for calendar programs.

Guarantee: pure. Lines end with CRLF and have at most 75 bytes; texts are escaped, so no name of a schedule
can add a line. The UID of a fire follows from its schedule and its nominal time, so a program that
reads the feed again replaces its entries.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

_MAX_LINE_BYTES = 75
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_ESCAPES = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"})


class FeedEntry(NamedTuple):
    schedule: str
    owner: str
    at: datetime
    """Nominal time."""
    title: str = ""
    note: str = ""


def feed(entries: Iterable[FeedEntry], name: str, now: datetime) -> str:
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//tocsin//schedules//EN",
        "METHOD:PUBLISH",
        f"X-WR-CALNAME:{_text(name)}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT15M",
    ]
    for entry in entries:
        lines += _event(entry, now)
    lines.append("END:VCALENDAR")
    return "".join(f"{part}\r\n" for line in lines for part in _folded(line))


def _event(entry: FeedEntry, now: datetime) -> list[str]:
    shown = entry.title or entry.schedule
    summary = f"{shown} ({entry.owner})" if entry.owner else shown
    identity = f"{len(entry.owner)}/{entry.owner}/{entry.schedule}/{entry.at.isoformat()}"
    lines = [
        "BEGIN:VEVENT",
        f"UID:{hashlib.sha256(identity.encode()).hexdigest()[:32]}@tocsin",
        f"DTSTAMP:{_instant(now)}",
        f"DTSTART:{_instant(entry.at)}",
        f"SUMMARY:{_text(summary)}",
        "TRANSP:TRANSPARENT",
    ]
    if entry.note:
        lines.append(f"DESCRIPTION:{_text(entry.note)}")
    return [*lines, "END:VEVENT"]


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _text(text: str) -> str:
    return _CONTROL.sub(" ", text.replace("\r\n", "\n")).translate(_ESCAPES)


def _folded(line: str) -> Iterator[str]:
    """The line in parts of at most 75 bytes, without dividing a character."""
    part, size = "", 0
    for letter in line:
        length = len(letter.encode())
        if size + length > _MAX_LINE_BYTES:
            yield part
            part, size = " ", 1
        part += letter
        size += length
    yield part
