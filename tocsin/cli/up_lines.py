"""What `up` says about each record of the stream: one line, as a pure function of the message and what is
known.

Guarantee: every fire, miss and action outcome gives one line; the other half of an action (the step being
due) gives none. A line holds no control characters, whatever a payload contains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from tocsin.cli.printing import compact, local_text, printable, title

TzOf = Callable[[str, str], str]
_LONGEST = 100


class Line(NamedTuple):
    """`kind` decides the colour: fired, missed, action, failed or event."""

    kind: str
    text: str
    seq: int

    def plain(self) -> str:
        return f"{self.kind:<6}  {self.text}  seq {self.seq}"


@dataclass(frozen=True)
class Record:
    seq: int
    body: Mapping[str, Any]

    @property
    def is_event(self) -> bool:
        return "state" not in self.body

    @property
    def key(self) -> tuple[str, str]:
        return str(self.body.get("owner", "")), str(self.body.get("schedule", ""))


def line_of(record: Record, tz_of: TzOf) -> Line | None:
    body = record.body
    if not record.is_event:
        return _action(record)
    if body["type"] == "schedule-missed":
        return _missed(record, tz_of)
    if body.get("origin") == "scheduled":
        nominal = local_text(_instant(body["time"]), tz_of(*record.key))
        text = f"{title(*record.key)}  {nominal}  {lateness_ms(body)} ms late"
        return Line("fired", printable(text), record.seq)
    name = body.get("schedule") or body.get("rule") or body.get("action") or ""
    plain = {key: value for key, value in body["data"].items() if not isinstance(value, dict | list)}
    text = "  ".join(part for part in (body["type"], name, _short(compact(plain)) if plain else "") if part)
    return Line("event", printable(text), record.seq)


def lateness_ms(body: Mapping[str, Any]) -> int:
    """From when the fire was due (its nominal time and spread) to its commit, by the database's clock."""
    due = _instant(body.get("fireat") or body["time"])
    return max(0, round((_instant(body["recordedat"]) - due).total_seconds() * 1000))


def _action(record: Record) -> Line | None:
    body = record.body
    if body["state"] == "due":
        return None
    data = body["data"]
    shown = data.get("message") or data.get("error") or (compact(data) if data else "")
    text = "  ".join(part for part in (body["action"], body["state"], _short(str(shown))) if part)
    return Line("failed" if body["state"] == "failed" else "action", printable(text), record.seq)


def _missed(record: Record, tz_of: TzOf) -> Line:
    data = record.body["data"]
    tz = tz_of(*record.key)
    first, last = (local_text(_instant(data[end]), tz) for end in ("first", "last"))
    count = f"{'at least ' if data.get('at_least') else ''}{data['count']}"
    when = f"once, {first}" if data["count"] == 1 else f"{count} times, {first} to {last}"
    text = f"{title(*record.key)}  {when}  ({data['reason']})"
    return Line("missed", printable(text), record.seq)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
