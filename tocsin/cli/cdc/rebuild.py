"""`tocsin cdc rebuild`: makes the record stream again from the record log.

Guarantee: it shows what it will do, in numbers, and does it after a yes, at the prompt or as
`--yes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tocsin.cli.confirm import Yes, confirm
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, current_user
from tocsin.cli.output import print_json

if TYPE_CHECKING:
    from cdc.rebuild import RebuildPlan


def rebuild(yes: Yes = False, by: CreatedBy = None, as_json: Json = False) -> None:
    """Remove the record stream and make it again from the record log.

    The new stream has the same records at the same sequences.

    \b
    Example:
      tocsin cdc rebuild
    """
    plan = run_command(_plan())
    typer.echo(_plan_text(plan), err=True)
    if not yes:
        confirm("remove the stream and make it again?")
    last = run_command(_rebuild(plan, by or current_user()))
    if as_json:
        print_json({"from": plan.first, "until": last, "consumers": plan.consumers})
        return
    typer.echo(f"rebuilt the stream from {plan.first} to {last}")


def _plan_text(plan: RebuildPlan) -> str:
    lines = [f"the log has {plan.first} to {plan.last}; the stream has {plan.messages} messages"]
    if plan.missing:
        lines.append(f"{plan.missing} sequences are recorded gaps; tombstones will take them")
    if plan.consumers:
        lines.append(f"these durable consumers are removed with the stream: {', '.join(plan.consumers)}")
        lines.append("workers create theirs again; the services that own the others must do the same")
    return "\n".join(lines)


async def _plan() -> RebuildPlan:
    from cdc.log_reader import LogReader
    from cdc.rebuild import plan_rebuild
    from tocsin.cli.session import admin_settings, database, message_bus

    settings = admin_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        return await plan_rebuild(bus, settings, LogReader(connection))


async def _rebuild(plan: RebuildPlan, who: str) -> int:
    from cdc.log_reader import LogReader
    from cdc.rebuild import rebuild as rebuild_stream
    from tocsin.cli.progress import progress_bar
    from tocsin.cli.session import admin_settings, command_actor, database, message_bus
    from tocsin.policy import Operation

    settings = admin_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        actor = await command_actor(connection, who, Operation.REPAIR_LOG)
        with progress_bar("publishing", plan.first, plan.last) as progress:
            return await rebuild_stream(bus, settings, LogReader(connection), actor, progress)
