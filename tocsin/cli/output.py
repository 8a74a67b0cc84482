"""The form of answers: aligned columns for people, JSON for machines, one spelling for times.

Guarantee: no text from a database or a stream can move the cursor or break a line: control
characters are shown escaped, in JSON as `\\uXXXX`. Everything here is pure, except `print_json` and `print_table`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import typer

from tocsin.core.printable import plain_json, printable

__all__ = ["printable"]
_DAY_S = 86_400


def print_json(value: object) -> None:
    typer.echo(json_text(value, indent=2))


def json_text(value: object, indent: int | None = None) -> str:
    return plain_json(json.dumps(value, ensure_ascii=False, indent=indent, default=_plain))


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    for line in table_lines(headers, rows):
        typer.echo(line)


def table_lines(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Left-aligned columns, two spaces apart, as wide as their widest cell."""
    from rich.cells import cell_len

    cells = [list(headers), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(row[column]) for row in cells) for column in range(len(headers))]
    return [
        "  ".join(
            cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in cells
    ]


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def utc_text(instant: datetime) -> str:
    """`2026-03-08 07:00:00Z`; milliseconds only if there are any."""
    at = instant.astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}{_fraction(at)}Z"


def local_text(instant: datetime, tz: str) -> str:
    """`Sun 2026-03-08 03:00:00 EDT`"""
    from timers.recurrence.zones import zone

    at = instant.astimezone(zone(tz))
    return f"{at:%a %Y-%m-%d %H:%M:%S}{_fraction(at)} {at:%Z}"


def countdown(distance: timedelta) -> str:
    """`in 4m12s`, or `8s ago`, with the two largest units."""
    seconds = int(abs(distance).total_seconds())
    parts = [
        (seconds // _DAY_S, "d"),
        (seconds % _DAY_S // 3600, "h"),
        (seconds % 3600 // 60, "m"),
        (seconds % 60, "s"),
    ]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    text = "".join(f"{amount}{unit}" for amount, unit in parts[:2] if amount) or "0s"
    return f"{text} ago" if distance < timedelta(0) and seconds else f"in {text}"


def due_text(distance: timedelta) -> str:
    """The countdown of something that is pending; `due now` once its time has passed."""
    return countdown(distance) if distance >= timedelta(0) else "due now"


def since_text(then: datetime, now: datetime) -> str:
    """`8s ago`; `just now` also where two clocks disagree and the instant seems to lie ahead."""
    return countdown(then - now) if now - then >= timedelta(seconds=1) else "just now"


def duration_text(duration: timedelta) -> str:
    """`340 ms`, `1.2 s`, `5m10s`"""
    seconds = duration.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return countdown(duration).removeprefix("in ")


def title(owner: str, name: str) -> str:
    """The name of a schedule, a rule or a series on a screen; either part may be empty."""
    return f"{owner}/{name}" if owner and name else owner or name


def compact(value: object) -> str:
    """A value on one line: JSON if it has parts, plain text otherwise."""
    if value is None:
        return "none"
    if isinstance(value, dict | list):
        return json_text(value)
    return _plain(value) if isinstance(value, datetime | timedelta | UUID) else str(value)


def _fraction(at: datetime) -> str:
    return f".{at.microsecond // 1000:03d}" if at.microsecond >= 1000 else ""


def _plain(value: Any) -> str:
    from schemas.values.duration import format_duration
    from tocsin.core.instant import instant_text

    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
