"""`tocsin silence add`: mutes the alarms that match, for a time.

Guarantees: the alarms that match now are shown before the question. The silence, its event and its
audit row are one transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.alarms.many import future_instant, match_lines, matching_alarms
from tocsin.cli.confirm import Yes, confirm
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, Tz, current_user
from tocsin.cli.output import local_text, print_json, utc_text
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from rules.suppression.silence_store import NewSilence

Row = dict[str, Any]
_ACTIVE = ("pending", "open")


def add(  # noqa: PLR0913 - one option per property of a silence
    where: Annotated[
        str, typer.Option("--where", help="Matcher of alarms, such as 'labels.site == \"ams\"'.")
    ],
    for_: Annotated[str | None, typer.Option("--for", help="How long, such as 2h or 3d.")] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="Start, an instant or a phrase; now by default.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="End, an instant or a phrase.")] = None,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who see the alarms.")] = "",
    tz: Tz = "UTC",
    yes: Yes = False,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Mute the alarms that match a condition, for a time.

    They open and resolve as always, and notify no one. When the silence ends, those that are still
    open are notified. It also covers alarms that open later.

    \b
    Examples:
      tocsin silence add --where 'labels.site == "ams"' --for 2h --reason "new switch"
      tocsin silence add --where 'severity < high' --from "tonight at 10pm" --until "tomorrow at 6am"
    """
    if (for_ is None) == (until is None):
        raise InvalidInput(
            "a silence needs exactly one end", remedy="give --for a duration, or --until a time"
        )
    from rules.alarms.matching_alarms import compile_where

    compile_where(where)
    who = by or current_user()
    if not yes:
        silence, rows = run_command(_preview(where, (for_, from_, until), reason, tz, who))
        for line in [_when_text(silence, tz), *match_lines(rows, "alarm")]:
            typer.echo(line, err=True)
        confirm("add this silence?")
    silence, rows, seq = run_command(_add(where, (for_, from_, until), reason, tz, who))
    if as_json:
        print_json({**silence_json(silence), "matches": len(rows), "seq": seq})
        return
    typer.echo(f"added silence {str(silence.id)[:8]} {_span_text(silence)}, seq {seq}")
    for line in match_lines(rows, "alarm"):
        typer.echo(line)


def silence_json(silence: NewSilence) -> Row:
    names = ("id", "matcher", "starts_at", "ends_at", "reason", "created_by", "source")
    return {name: getattr(silence, name) for name in names}


def _when_text(silence: NewSilence, tz: str) -> str:
    return f"from {local_text(silence.starts_at, tz)} until {local_text(silence.ends_at, tz)} ({tz})"


def _span_text(silence: NewSilence) -> str:
    return f"from {utc_text(silence.starts_at)} until {utc_text(silence.ends_at)}"


async def _preview(
    where: str, times: tuple[str | None, str | None, str | None], reason: str, tz: str, who: str
) -> tuple[NewSilence, list[Row]]:
    from schemas.wire.silence_events import check_silence
    from tocsin.cli.session import command_actor, database
    from tocsin.policy import Operation

    async with database() as connection:
        actor = await command_actor(connection, who, Operation.SILENCE_ALARMS)
        silence = _silence(where, times, reason, tz, who, actor.now)
        check_silence(actor.now, silence.starts_at, silence.ends_at, silence.reason)
        return silence, await matching_alarms(connection, where, _ACTIVE)


async def _add(
    where: str, times: tuple[str | None, str | None, str | None], reason: str, tz: str, who: str
) -> tuple[NewSilence, list[Row], int]:
    from rules.suppression.operator import add_silence
    from tocsin.cli.session import command_actor, database
    from tocsin.policy import Operation

    async with database() as connection:
        actor = await command_actor(connection, who, Operation.SILENCE_ALARMS)
        silence = _silence(where, times, reason, tz, who, actor.now)
        seq = await add_silence(connection, silence, actor)
        return silence, await matching_alarms(connection, where, _ACTIVE), seq


def _silence(
    where: str,
    times: tuple[str | None, str | None, str | None],
    reason: str,
    tz: str,
    who: str,
    now: datetime,
) -> NewSilence:
    from rules.suppression.silence_store import NewSilence
    from schemas.values.duration import parse_duration

    for_, from_, until = times
    starts_at = now if from_ is None else future_instant(from_, tz, now)
    if for_ is not None:
        try:
            ends_at = starts_at + parse_duration(for_)
        except OverflowError:
            raise InvalidInput(f"--for {for_!r} is too long", remedy="give a year at most") from None
    else:
        assert until is not None
        ends_at = future_instant(until, tz, now)
    return NewSilence(where, starts_at, ends_at, reason, who)
