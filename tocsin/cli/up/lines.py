"""Builds the line that `up` shows for a record of the stream.

Guarantee: each fire, missed time, alarm transition, staleness or health change, result of a step
and other event gives one line. A step that is due gives none. A line has no control characters,
even if a payload does.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from rules.alarms.explain import TRANSITION_TEXTS
from schemas.values.severities import level_name
from schemas.wire.event_facts import is_manual
from tocsin.cli.output import compact, countdown, local_text, printable, shortened, title, utc_text
from tocsin.cli.records.foreign_messages import foreign_text
from tocsin.core.instant import parse_instant

TzOf = Callable[[str, str], str]
StepOf = Callable[[str, int], str]
_MAX_LENGTH = 100


class Line(NamedTuple):
    """`kind` decides the colour: fired, missed, alarm, stale, fresh, health, action, failed or event."""

    kind: str
    text: str
    seq: int
    is_resolved: bool = False
    """An alarm resolved, or health is ok again."""

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
    def schedule_key(self) -> tuple[str, str]:
        """The owner, and the name of the schedule; the name is empty if no schedule is concerned."""
        return str(self.body.get("owner", "")), str(self.body.get("schedule", ""))


def line_of(record: Record, tz_of: TzOf, step_of: StepOf = lambda action, step: "") -> Line | None:
    body = record.body
    if not record.is_event:
        return _step(record, step_of)
    if body["type"] in TRANSITION_TEXTS and "rule" in body:
        return _transition(record)
    if body.get("kind") in ("stale", "fresh"):
        return _staleness(record)
    if body.get("kind") == "health":
        return _health(record)
    if body.get("kind") == "calc":
        return None  # There are as many as datapoints, and these are not shown either.
    if body["type"] == "schedule-missed":
        return _missed(record, tz_of)
    if body.get("origin") == "scheduled":
        nominal = local_text(parse_instant(body["time"]), tz_of(*record.schedule_key))
        if is_manual(body["origin"], body.get("id"), body.get("correlationid")):
            return Line(
                "fired", printable(f"{title(*record.schedule_key)}  {nominal}  run by hand"), record.seq
            )
        text = f"{title(*record.schedule_key)}  {nominal}  {lateness_ms(body)} ms late"
        return Line("fired", printable(text), record.seq)
    name = body.get("schedule") or body.get("rule") or body.get("action") or body.get("key") or ""
    plain = {key: value for key, value in body["data"].items() if not isinstance(value, dict | list)}
    text = "  ".join(
        part
        for part in (
            body["type"],
            title(body.get("owner", ""), name),
            shortened(compact(plain), _MAX_LENGTH) if plain else "",
        )
        if part
    )
    return Line("event", printable(text), record.seq)


def foreign_line(seq: int, data: bytes) -> Line:
    return Line("event", printable(foreign_text(data)), seq)


def lateness_ms(body: Mapping[str, Any]) -> int:
    """The time from the nominal time plus spread to the commit, by the clock of the database."""
    due = parse_instant(body.get("fireat") or body["time"])
    return max(0, round((parse_instant(body["recordedat"]) - due).total_seconds() * 1000))


def _step(record: Record, step_of: StepOf) -> Line | None:
    body = record.body
    if body["state"] == "due":
        return None
    data = body["data"]
    step = step_of(body["action"], body["step"])
    shown = shortened(str(data.get("message") or data.get("error") or data.get("text") or ""), _MAX_LENGTH)
    if not shown and "until" not in data and data:
        shown = shortened(compact(data), _MAX_LENGTH)
    if "until" in data:
        again = "again at" if shown else "until"
        shown = "  ".join(
            part for part in (shown, f"{again} {utc_text(parse_instant(data['until']))}") if part
        )
    name = title(body.get("owner", ""), body["action"])
    text = "  ".join(part for part in (name, step, body["state"], shown) if part)
    return Line(
        "failed" if body["state"] in ("failed", "timed_out") else "action", printable(text), record.seq
    )


def _transition(record: Record) -> Line:
    body, data = record.body, record.body["data"]
    verb = TRANSITION_TEXTS[body["type"]]
    if body["type"] == "alarm-opened":
        verb = f"{verb}, {level_name(body['severity'])}"
    until = data.get("until")
    details = (
        data.get("message"),
        data.get("who") and f"by {data['who']}",
        until and f"until {utc_text(parse_instant(until))}",
        data.get("note"),
    )
    parts = (title(body.get("owner", ""), body["rule"]), verb, *map(str, filter(None, details)))
    return Line(
        "alarm", printable("  ".join(parts)), record.seq, is_resolved=body["type"] == "alarm-resolved"
    )


def _staleness(record: Record) -> Line:
    body, data = record.body, record.body["data"]
    detail = f"the value is {compact(data['value'])}"
    if body["kind"] == "stale":
        age = countdown(timedelta(seconds=data["age_s"])).removeprefix("in ")
        detail = f"no datapoint for {age}, the last value was {compact(data['value'])}"
    text = f"{title(body['owner'], body['key'])}  {shortened(detail, _MAX_LENGTH)}"
    return Line(body["kind"], printable(text), record.seq)


def _health(record: Record) -> Line:
    body, data = record.body, record.body["data"]
    reason = f" ({data['reason']})" if data.get("reason") else ""
    was = f", was {data['was']}" if data.get("was") else ""
    text = f"{body['owner']}  {data['health']}{reason}{was}"
    return Line("health", printable(text), record.seq, is_resolved=data["health"] == "ok")


def _missed(record: Record, tz_of: TzOf) -> Line:
    data = record.body["data"]
    tz = tz_of(*record.schedule_key)
    first, last = (local_text(parse_instant(data[end]), tz) for end in ("first", "last"))
    count = f"{'at least ' if data.get('at_least') else ''}{data['count']}"
    when = f"once, {first}" if data["count"] == 1 else f"{count} times, {first} to {last}"
    text = f"{title(*record.schedule_key)}  {when}  ({data['reason']})"
    return Line("missed", printable(text), record.seq)
