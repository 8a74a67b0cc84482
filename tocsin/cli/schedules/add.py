"""`tocsin schedule add`: adds a schedule, idempotent by owner and name.

Guarantees: adding the same content again changes nothing and returns the schedule with `deduped:
true`. Other content under the same owner and name is rejected with the difference, unless
`--replace` or `--if-generation` asks for the edit. A relative time (`--in 10m`, `--at "tomorrow at
9am"`) counts as the same content if it gave the stored instant when the schedule was added or
edited, so a retry is safe.

The options are validated as a `schedule` document, so that rule files and the command line accept
the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, IfGeneration, Json, Owner, Tz, current_user, json_object
from tocsin.cli.schedules.recurrence_options import Cron, DstFold, DstGap, Dtstart, Every, Rrule
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from timers.schedules import PutResult

Row = dict[str, Any]


At = Annotated[
    str | None,
    typer.Option("--at", help="Fire once, at an instant, a wall time, a Unix timestamp or a phrase."),
]
In = Annotated[str | None, typer.Option("--in", help="Fire once, after a duration such as 10m or 2d.")]
Spread = Annotated[
    str | None, typer.Option("--spread", help="Delay each fire by a part of this duration, always the same.")
]
CatchUp = Annotated[
    str, typer.Option("--catch-up", help="Fire the latest, all or none of the times that an outage missed.")
]
Window = Annotated[str | None, typer.Option("--window", help="Catch up with times at most this old.")]
Grace = Annotated[str | None, typer.Option("--grace", help="Fires at most this late count as on time.")]
MaxCatchUp = Annotated[int, typer.Option("--max-catch-up", help="Largest number of fires of --catch-up all.")]
Retry = Annotated[
    str | None,
    typer.Option("--retry", help="Retry policy of its action, such as '{\"attempts\": 3}'."),
]
Replace = Annotated[bool, typer.Option("--replace", help="Edit the schedule if it has other content.")]


def add(  # noqa: PLR0913 - one option per key of a schedule
    name: Annotated[str, typer.Argument(help="Name, unique within its owner.")],
    at: At = None,
    in_: In = None,
    every: Every = None,
    cron: Cron = None,
    rrule: Rrule = None,
    dtstart: Dtstart = None,
    tz: Tz = "UTC",
    owner: Owner = "",
    payload: Annotated[str, typer.Option("--payload", help="JSON object for the events.")] = "{}",
    type_: Annotated[str, typer.Option("--type", help="Type of the events.")] = "schedule-fired",
    action: Annotated[str | None, typer.Option("--action", help="Action to run at each fire.")] = None,
    spread: Spread = None,
    catch_up: CatchUp = "latest",
    window: Window = None,
    grace: Grace = None,
    max_catch_up: MaxCatchUp = 100,
    dst_gap: DstGap = "forward",
    dst_fold: DstFold = "first",
    starts_at: Annotated[str | None, typer.Option("--starts-at", help="First instant for a fire.")] = None,
    ends_at: Annotated[str | None, typer.Option("--ends-at", help="Last instant for a fire.")] = None,
    retry: Retry = None,
    title: Annotated[str | None, typer.Option("--title", help="Name for people.")] = None,
    description: Annotated[str | None, typer.Option("--description", help="Note for readers.")] = None,
    runbook_url: Annotated[
        str | None, typer.Option("--runbook-url", help="Where people read what to do.")
    ] = None,
    replace: Replace = False,
    if_generation: IfGeneration = None,
    created_by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Add a schedule; adding the same one again changes nothing.

    \b
    Example:
      tocsin schedule add invoice-42 --in 30m --owner billing --payload '{"invoice": 42}'
    """
    from tocsin.cli.schedules.one_schedule import print_schedule

    values: Row = {
        **{"name": name, "at": at, "every": every, "cron": cron, "rrule": rrule, "dtstart": dtstart},
        **{"tz": tz, "owner": owner, "type": type_, "action": action},
        "payload": json_object(payload, "--payload"),
        **{"spread": spread, "catch_up": catch_up, "window": window, "grace": grace},
        **{"max_catch_up": max_catch_up, "dst_gap": dst_gap, "dst_fold": dst_fold},
        **{"starts_at": starts_at, "ends_at": ends_at},
        "retry": None if retry is None else json_object(retry, "--retry"),
        **{"title": title, "description": description, "runbook_url": runbook_url},
    }
    if in_ is not None and at is not None:
        raise InvalidInput("--at and --in exclude each other", remedy="keep one of them")
    if in_ is not None:
        values["at"] = f"in {in_}"
    put, row = run_command(_add(values, replace, if_generation, created_by or current_user()))
    print_schedule(row, as_json, deduped=put.outcome == "unchanged", outcome=put.outcome)


async def _add(values: Row, replaces: bool, if_generation: int | None, who: str) -> tuple[PutResult, Row]:
    from rules.apply.one_schedule import ScheduleEdit, put_one_schedule
    from tocsin.cli.session import command_actor, database
    from tocsin.core.db import retrying
    from tocsin.policy import Operation

    edit = ScheduleEdit(replaces or if_generation is not None, if_generation)
    async with database() as connection:

        async def once() -> tuple[PutResult, Row]:
            actor = await command_actor(connection, who, Operation.PUT_SCHEDULE, values["owner"])
            return await put_one_schedule(connection, values, actor, edit)

        return await retrying(once)
