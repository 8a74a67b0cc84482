"""Filters of the templates: times with their zones, distances, severities, short ids. Pure.

Each returns plain text, which the template escapes, or markup that is built from escaped parts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from schemas.values.plain_number import plain_text
from schemas.values.severities import level_name, severities
from timers.recurrence.zones import zone
from timers.time_text import due_text, duration_text, since_text, utc_text
from tocsin.core.instant import instant_text
from tocsin.core.printable import plain_json, printable
from tocsin.pictures.tones import severity_tone

_LONGEST_VALUE = 80


@pass_context
def when(context: Context, instant: datetime | None, tz: str | None = None) -> Markup:
    """A time with its zone: that of the reader, or `tz`. The tooltip has UTC."""
    if instant is None:
        return Markup("")
    visit = context["visit"]
    tz = tz or visit.tz
    at = instant.astimezone(zone(tz))
    now = visit.now.astimezone(zone(tz))
    is_near = abs((at.date() - now.date()).days) == 0
    text = f"{at:%H:%M:%S}" if is_near else f"{at:%a %d %b %H:%M}"
    if at.year != now.year:
        text = f"{at:%d %b %Y %H:%M}"
    return Markup('<time datetime="{}" title="{}">{} <span class="zone">{}</span></time>').format(
        instant_text(instant), f"{at:%a %Y-%m-%d %H:%M:%S} {at:%Z} = {utc_text(instant)}", text, f"{at:%Z}"
    )


@pass_context
def since(context: Context, instant: datetime | None) -> Markup:
    """`8m ago`, with the time in the tooltip."""
    return _distance(context, instant, since_text)


@pass_context
def due(context: Context, instant: datetime | None) -> Markup:
    """`in 4m`, with the time in the tooltip."""
    return _distance(context, instant, lambda then, now: due_text(then - now))


def _distance(
    context: Context, instant: datetime | None, text: Callable[[datetime, datetime], str]
) -> Markup:
    if instant is None:
        return Markup("")
    visit = context["visit"]
    at = instant.astimezone(zone(visit.tz))
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        instant_text(instant), f"{at:%a %Y-%m-%d %H:%M:%S %Z}", text(instant, visit.now)
    )


def span(duration: timedelta | None) -> str:
    return "" if duration is None else duration_text(duration)


def severity(level: int | None) -> Markup:
    """The name of a severity with its colour."""
    if not level:
        return Markup("")
    return Markup('<span class="sev {}">{}</span>').format(severity_class(level), level_name(level))


def severity_class(level: int | None) -> str:
    """`s1` (least severe) to `s5`, however many levels there are: the colour of the pictures."""
    return f"s{severity_tone(level or 1, len(severities()))[-1]}"


def short(id: UUID | str | None) -> str:
    """The first eight characters of an id, as commands take it."""
    return "" if id is None else str(id)[:8]


def value(found: Any) -> str:
    """A value on one line."""
    if found is None:
        return ""
    if isinstance(found, bool | int | float):
        return plain_text(found)
    text = plain_json(json.dumps(found, ensure_ascii=False)) if isinstance(found, list | dict) else str(found)
    text = printable(text)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def pretty(found: Any) -> str:
    """A payload over several lines."""
    return plain_json(json.dumps(found, ensure_ascii=False, indent=2, default=str))


def count(number: int, noun: str, most: int | None = None) -> str:
    """`1 alarm`, `3 alarms`; from `most` on `10,000+ alarms`."""
    text = f"{number:,}" if most is None or number < most else f"{most:,}+"
    return f"{text} {noun}" if number == 1 else f"{text} {noun}s"


def name_of(owner: str, name: str) -> str:
    """The name of a schedule, a rule or a series; either part may be empty."""
    return f"{owner}/{name}" if owner and name else owner or name


def message(payload: Mapping[str, Any]) -> str:
    """The title of an alarm, or its message."""
    return printable(str(payload.get("title") or payload.get("message") or ""))


FILTERS: dict[str, Callable[..., Any]] = {
    "when": when,
    "since": since,
    "due": due,
    "span": span,
    "severity": severity,
    "severity_class": severity_class,
    "short": short,
    "value": value,
    "pretty": pretty,
    "count_of": count,
    "printable": printable,
}
