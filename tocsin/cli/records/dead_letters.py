"""`tocsin dead-letters`: lists messages that were rejected, with the reason.
`tocsin dead-letters retry`: puts them back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.confirm import Yes, confirm
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, current_user, instant_or_ago
from tocsin.cli.output import print_json, print_table, printable
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from rules.lanes.put_back import StoredLetter

_DEAD_LETTER_KINDS = ("datapoint", "event", "record", "report", "request", "step")
_MAX_BODY_LENGTH = 60
_TIMEOUT_S = 5


def dead_letters(
    context: typer.Context,
    kind: Annotated[
        str | None, typer.Option("--kind", help=f"Only one kind: {', '.join(_DEAD_LETTER_KINDS)}.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many.")] = 20,
    as_json: Json = False,
) -> None:
    """List messages that were rejected, the newest first, or put them back.

    SEQ is the position in the stream of dead letters, not in the record log.

    \b
    Examples:
      tocsin dead-letters --kind datapoint --limit 5
      tocsin dead-letters retry --reason "permission denied" --since 2h
    """
    if context.invoked_subcommand is not None:
        return
    _check_kind(kind)
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


def retry(
    seqs: Annotated[
        list[int] | None, typer.Argument(metavar="[SEQ]...", help="As in `tocsin dead-letters`.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help=f"Only one kind: {', '.join(_DEAD_LETTER_KINDS)}.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Only those whose reason contains this text.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only those that arrived since: 2h, or an instant.")
    ] = None,
    all_letters: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    yes: Yes = False,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Put dead letters back: their messages are processed as new arrivals.

    Fix the cause first: a message that is rejected again is a new dead letter. A datapoint or an
    event without a `ts` gets the time of its first arrival. A record starts the actions that it
    has not started.

    \b
    Examples:
      tocsin dead-letters retry 17 18
      tocsin dead-letters retry --kind datapoint --since 2h
    """
    _check_kind(kind)
    if not (seqs or kind or reason or since or all_letters):
        raise InvalidInput(
            "nothing selects the dead letters", remedy="give a SEQ, --kind, --reason, --since or --all"
        )
    letters = run_command(_select(seqs or [], kind, reason, since))
    if letters and not yes:
        confirm(f"put {_count(len(letters))} back?")
    back, kept = run_command(_put_back(letters, by or current_user()))
    if as_json:
        print_json({"put_back": back, "kept": kept})
        return
    for letter in kept:
        typer.echo(printable(f"kept {letter['seq']}: {letter['reason']}"))
    typer.echo(f"put {_count(len(back))} back" if back else "no dead letters were put back")


def _count(number: int) -> str:
    return f"{number:,} dead letter{'' if number == 1 else 's'}"


def _check_kind(kind: str | None) -> None:
    if kind is not None and kind not in _DEAD_LETTER_KINDS:
        raise InvalidInput(f"unknown kind {kind!r}", remedy=f"use one of {', '.join(_DEAD_LETTER_KINDS)}")


async def _select(
    seqs: list[int], kind: str | None, reason: str | None, since: str | None
) -> list[StoredLetter]:
    from rules.lanes.put_back import LetterFilter, select_letters
    from timers.working_set import database_now
    from tocsin.cli.session import command_settings, database, message_bus

    settings = command_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        now = await database_now(connection)
        from_at = None if since is None else instant_or_ago(since, "--since", now)
        wanted = LetterFilter(frozenset(seqs), kind, reason, from_at)
        return await select_letters(bus.jetstream(timeout=_TIMEOUT_S), settings, wanted)


async def _put_back(
    letters: list[StoredLetter], who: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns those that were put back, and those that were kept with the reason."""
    from rules.dispatch.put_letters_back import put_letters_back
    from tocsin.cli.session import command_actor, command_settings, database, message_bus
    from tocsin.policy import Operation

    settings = command_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        actor = await command_actor(connection, who, Operation.RETRY_DEAD_LETTER)
        return await put_letters_back(connection, bus.jetstream(timeout=_TIMEOUT_S), settings, letters, actor)


async def _dead_letters(kind: str | None, limit: int) -> list[dict[str, Any]]:
    from rules.lanes.dead_letters import read_dead_letters
    from tocsin.cli.session import command_settings, message_bus

    settings = command_settings()
    async with message_bus(settings) as bus:
        return await read_dead_letters(bus.jetstream(), settings, kind, limit)
