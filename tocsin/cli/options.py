"""Options that several commands share, so that they have one name and one meaning everywhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document; errors too.")]
Owner = Annotated[str, typer.Option("--owner", help="Owner of the schedule; none by default.")]
OnlyOwner = Annotated[str | None, typer.Option("--owner", help="Only of this owner.")]
IfGeneration = Annotated[
    int | None,
    typer.Option("--if-generation", help="Only if the schedule still has this generation."),
]
CreatedBy = Annotated[
    str | None, typer.Option("--created-by", "--by", help="Name for the audit; your user name by default.")
]
ProgressLines = Annotated[
    bool, typer.Option("--progress-lines", hidden=True, help="Write `progress PERCENT` lines to stderr.")
]
Tz = Annotated[str, typer.Option("--tz", help="IANA timezone of wall times, such as Europe/London.")]


def instant_option(text: str, option: str) -> datetime:
    """The instant in `text`: an ISO text, a Unix timestamp, or a phrase, which is read in UTC.

    An ISO text needs an offset: a wall time is another instant on another host.
    """
    from clock.time_source import wall_now
    from timers.natural_time import parse_unix, parse_when
    from timers.recurrence.once import parse_iso

    unix = parse_unix(text)
    if unix is not None:
        return unix
    parsed = parse_iso(text)
    if parsed is None:
        try:
            return parse_when(text, now=wall_now(), tz="UTC")
        except InvalidInput:
            pass
    if parsed is None or parsed.tzinfo is None:
        raise InvalidInput(
            f"{option} {text!r} is not an instant",
            remedy="write it as 2026-03-07T00:00Z, as a unix timestamp, or as 'tomorrow at 9am'",
        )
    return parsed


def instant_or_ago(text: str, option: str, now: datetime) -> datetime:
    """The instant in `text`, or the instant that lies a duration such as `2h` before `now`."""
    from schemas.values.duration import parse_duration

    try:
        return now - parse_duration(text)
    except (InvalidInput, OverflowError):
        pass
    try:
        return instant_option(text, option)
    except InvalidInput:
        raise InvalidInput(
            f"{option} {text!r} is neither a duration nor an instant",
            remedy="write a duration such as 2h, or an instant such as 2026-03-07T00:00Z",
        ) from None


def json_object(text: str, option: str) -> dict[str, Any]:
    import json

    remedy = "write an object, such as '{\"order\": 17}'"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{option} {text[:80]!r} is not JSON ({error})", remedy=remedy) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{option} {text[:80]!r} is not a JSON object", remedy=remedy)
    return value


def current_user() -> str:
    """The name of the user who runs this command, for the audit."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def check_output(path: Path, option: str) -> None:
    """Reject a file that cannot be written, before the work whose result it shall hold."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(
            f"{option} {path} cannot be written", remedy="name a file in a folder that you can write to"
        )
