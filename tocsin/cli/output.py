"""The form of answers: aligned columns for people, JSON for machines, one spelling for times.

Guarantee: no text from a database or a stream can move the cursor or break a line: control
characters are shown escaped, in JSON as `\\uXXXX`. Everything here is pure, except `print_json` and `print_table`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import typer

from timers.time_text import countdown, due_text, duration_text, local_text, since_text, utc_text
from tocsin.core.printable import plain_json, printable

__all__ = ["countdown", "due_text", "duration_text", "local_text", "printable", "since_text", "utc_text"]


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
