"""Commands over several alarms: chosen by their ids or by a matcher, one transaction for each.

Guarantees: a matcher is shown with the alarms that it matches, and asked for, unless `--yes` is
given. An alarm that cannot be changed does not stop the others. After an error of the server, the
message names how many were changed; the same command again changes the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.confirm import confirm
from tocsin.cli.output import print_json, printable
from tocsin.core.errors import InvalidInput, Refused, TocsinError

if TYPE_CHECKING:
    from datetime import datetime

    from tocsin.core.db import Connection

Row = dict[str, Any]
AlarmIds = Annotated[
    list[str] | None,
    typer.Argument(help="IDs of alarms, or the first four or more of their letters.", metavar="[ID]..."),
]
Where = Annotated[
    str | None,
    typer.Option("--where", help="All open alarms that match, such as 'labels.site == \"ams\"'."),
]
_SHOWN = 5


def alarm_title(row: Row) -> str:
    """`3f2a91c0 (dsp-hot of 'plant-7')`"""
    from rules.alarms.operator import alarm_title as title_of

    return title_of(row["id"], row["event_rule"], row["owner"])


def check_choice(ids: Sequence[str], where: str | None) -> None:
    if bool(ids) == (where is not None):
        raise InvalidInput(
            "name the alarms by their ids, or by --where"
            if not ids
            else "ids and --where exclude each other",
            remedy="`tocsin alarms` lists the ids; a matcher is such as 'labels.site == \"ams\"'",
        )


async def choose_alarms(connection: Connection, ids: Sequence[str], where: str | None) -> list[Row]:
    from rules.alarms.queries import find_alarm

    if where is not None:
        return await matching_alarms(connection, where)
    found = [await find_alarm(connection, text) for text in ids]
    return list({row["id"]: row for row in found}.values())


async def matching_alarms(connection: Connection, where: str, states: Sequence[str] = ("open",)) -> list[Row]:
    from rules.alarms import matching_alarms as shared

    return await shared.matching_alarms(connection, shared.compile_where(where), states)


def ask_about(rows: Sequence[Row], question: str) -> None:
    """Show what a matcher matches, and ask. stdout is for the answer, so both go to stderr."""
    for line in match_lines(rows):
        typer.echo(line, err=True)
    confirm(question)


def match_lines(rows: Sequence[Row], noun: str = "open alarm") -> list[str]:
    """`2 open alarms match:`, and the first of them."""
    if not rows:
        return [f"no {noun} matches now"]
    count = f"1 {noun} matches" if len(rows) == 1 else f"{len(rows):,} {noun}s match"
    shown = [f"  {printable(alarm_title(row))}" for row in rows[:_SHOWN]]
    more = [f"  and {len(rows) - _SHOWN:,} more"] if len(rows) > _SHOWN else []
    return [f"{count} now:", *shown, *more]


class Outcomes:
    """What happened to each alarm."""

    def __init__(self, participle: str) -> None:
        self._participle = participle
        self.done: list[tuple[Row, Any]] = []
        self.failed: list[tuple[Row, TocsinError]] = []

    async def act(self, rows: Sequence[Row], change: Callable[[Row], Awaitable[Any]]) -> Outcomes:
        """Change one alarm after the other."""
        for row in rows:
            try:
                self.done.append((row, await change(row)))
            except (Refused, InvalidInput) as error:
                self.failed.append((row, error))
            except Exception:
                done = f"{self._participle} {len(self.done)} of {len(rows)} alarms before the error"
                typer.echo(f"{done}; the same command again changes the rest", err=True)
                raise
        return self

    def print(self, as_json: bool, text: Callable[[Row, Any], str], facts: Callable[[Any], Row]) -> None:
        """Print the outcome of several alarms. Exits with 1 if one of them could not be changed."""
        if as_json:
            print_json(
                {
                    "count": len(self.done),
                    "alarms": [{"alarm": row["id"], **facts(result)} for row, result in self.done],
                    "failed": [{"alarm": row["id"], "error": str(error)} for row, error in self.failed],
                }
            )
        else:
            for row, result in self.done:
                typer.echo(printable(text(row, result)))
            for _, error in self.failed:
                typer.echo(printable(f"not {self._participle}: {error}"), err=True)
            typer.echo(f"{self._participle} {len(self.done)} of {len(self.done) + len(self.failed)} alarms")
        if self.failed:
            raise typer.Exit(1)


def future_instant(text: str, tz: str, now: datetime) -> datetime:
    """The instant that a phrase, a wall time or an ISO instant means. It lies after `now`."""
    from timers.natural_time import parse_when

    return parse_when(text, now=now, tz=tz)
