"""Options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Owner = Annotated[str, typer.Option("--owner", help="Owner of the schedule; none by default.")]
IfGeneration = Annotated[
    int | None,
    typer.Option("--if-generation", help="Only if the schedule is still at this generation."),
]
CreatedBy = Annotated[
    str | None, typer.Option("--created-by", "--by", help="Who is recorded in the audit; you by default.")
]
Tz = Annotated[str, typer.Option("--tz", help="IANA timezone of wall times, such as Europe/London.")]


def instant_option(text: str, option: str) -> datetime:
    """An instant needs its offset: a wall time would mean another instant on another host."""
    from timers.recurrence.once import parse_iso

    parsed = parse_iso(text)
    if parsed is None or parsed.tzinfo is None:
        raise InvalidInput(f"{option} {text!r} is not an instant", remedy="write it as 2026-03-07T00:00Z")
    return parsed


def instant_or_ago(text: str, option: str, now: datetime) -> datetime:
    """An instant, or how long ago: `2h`."""
    from schemas.values.duration import parse_duration

    try:
        return now - parse_duration(text)
    except InvalidInput:
        pass
    try:
        return instant_option(text, option)
    except InvalidInput:
        raise InvalidInput(
            f"{option} {text!r} is neither a duration such as 2h nor an instant such as 2026-03-07T00:00Z"
        ) from None


def person() -> str:
    """Who sits at this command line."""
    import getpass
    import os

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def check_output(path: Path, option: str) -> None:
    """Before the work, so that it is not for nothing."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(
            f"{option} {path} cannot be written", remedy="name a file in a folder that you can write to"
        )
