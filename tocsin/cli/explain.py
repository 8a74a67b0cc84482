"""`tocsin explain`: why a schedule did or did not fire at a time, from the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.failures import finish
from tocsin.cli.options import Json, Owner, instant_option
from tocsin.cli.printing import compact, print_json, printable, title

if TYPE_CHECKING:
    from datetime import datetime

    from clock.explain import Verdict


def explain(
    schedule: Annotated[str, typer.Argument(help="Name of the schedule.")],
    owner: Owner = "",
    at: Annotated[
        str | None, typer.Option("--at", help="The instant in question; the latest occurrence by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say why a schedule did or did not fire, citing the records.

    \b
    Example:
      tocsin explain daily-digest --at 2026-03-08T07:00Z
    """
    asked = None if at is None else instant_option(at, "--at")
    verdict = finish(_explain(owner, schedule, asked))
    if as_json:
        print_json({"outcome": verdict.outcome, "sentence": verdict.sentence, **verdict.facts})
        return
    typer.echo(printable(f"{title(owner, schedule)} {verdict.sentence}"))
    for key, value in verdict.facts.items():
        if value not in (None, ""):
            typer.echo(f"  {key:<14} {printable(compact(value))}")


async def _explain(owner: str, schedule: str, asked: datetime | None) -> Verdict:
    from clock.explain_records import explain_schedule
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        return await explain_schedule(connection, owner, schedule, await database_now(connection), asked)
