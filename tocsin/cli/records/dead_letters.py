"""`tocsin dead-letters`: lists messages that were rejected, with the reason. Reads only."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, print_table
from tocsin.core.errors import InvalidInput

_DEAD_LETTER_KINDS = ("datapoint", "event", "record", "report")
_MAX_BODY_LENGTH = 60


def dead_letters(
    kind: Annotated[
        str | None, typer.Option("--kind", help=f"Only one kind: {', '.join(_DEAD_LETTER_KINDS)}.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many.")] = 20,
    as_json: Json = False,
) -> None:
    """List messages that were rejected, the newest first.

    SEQ is the position in the stream of dead letters, not in the record log.

    \b
    Example:
      tocsin dead-letters --kind datapoint --limit 5
    """
    if kind is not None and kind not in _DEAD_LETTER_KINDS:
        raise InvalidInput(f"unknown kind {kind!r}", remedy=f"use one of {', '.join(_DEAD_LETTER_KINDS)}")
    letters = run_command(_dead_letters(kind, limit))
    if as_json:
        print_json(letters)
        return
    if not letters:
        typer.echo("no dead letters")
        return
    print_table(
        ("SEQ", "ARRIVED", "KIND", "SUBJECT", "REASON", "BODY"),
        (
            (
                str(letter["seq"]),
                letter["at"],
                letter["kind"],
                letter["subject"],
                letter["reason"],
                letter["body"][:_MAX_BODY_LENGTH],
            )
            for letter in letters
        ),
    )


async def _dead_letters(kind: str | None, limit: int) -> list[dict[str, Any]]:
    from rules.lanes.dead_letters import read_dead_letters
    from tocsin.cli.session import command_settings, message_bus

    settings = command_settings()
    async with message_bus(settings) as bus:
        return await read_dead_letters(bus.jetstream(), settings, kind, limit)
