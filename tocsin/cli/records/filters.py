"""Filters that `events` and `tail` share."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from tocsin.core.errors import InvalidInput

Type = Annotated[str | None, typer.Option("--type", help="Only of this type, such as alarm-opened.")]
Rule = Annotated[str | None, typer.Option("--rule", help="Only of this event_rule.")]
_TYPE = re.compile("[A-Za-z0-9_-]{1,128}")
_MAX_LENGTH = 128


def check_filters(type_: str | None, **names: str | None) -> None:
    """Reject a filter that no record can match. `names` are the other filters, by option."""
    if type_ is not None and not _TYPE.fullmatch(type_):
        raise InvalidInput(
            f"--type {type_!r} is not a type of records",
            remedy="use letters, digits, - and _, such as alarm-opened",
        )
    for option, name in names.items():
        if name is not None and len(name) > _MAX_LENGTH:
            raise InvalidInput(
                f"--{option} has {len(name)} characters", remedy=f"use at most {_MAX_LENGTH}, as names have"
            )
