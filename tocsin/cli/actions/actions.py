"""`tocsin actions`: what runs, what waits and what is dead; one of them with all its attempts; retry and cancel.

Guarantee: listing reads only. A retry or a cancel is one transaction, with its steps in the log and a row in the audit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.actions.text import STATE_HELP, actions_table, print_action, states_option
from tocsin.cli.errors import finish
from tocsin.cli.options import CreatedBy, Json, current_user, instant_or_ago
from tocsin.cli.output import print_json, printable

if TYPE_CHECKING:
    from datetime import datetime

    from rules.actions.history import Attempt

ActionId = Annotated[str, typer.Argument(help="Id of the action, or its beginning.", metavar="ID")]
State = Annotated[str | None, typer.Option("--state", help=STATE_HELP)]
Name = Annotated[str | None, typer.Option("--action", help="Only of this action.")]
Rule = Annotated[str | None, typer.Option("--rule", help="Only of this action_rule.")]
OfOwner = Annotated[str | None, typer.Option("--owner", help="Only of this owner.")]
Since = Annotated[
    str | None,
    typer.Option("--since", help="Only begun since: 2h ago, or an instant such as 2026-03-07T00:00Z."),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most this many.")]


def actions(
    context: typer.Context,
    state: State = None,
    name: Name = None,
    rule: Rule = None,
    owner: OfOwner = None,
    since: Since = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List actions, the newest first; show, retry or cancel one.

    \b
    Examples:
      tocsin actions --state dead
      tocsin actions show 3f2a91c0
      tocsin actions retry 3f2a91c0
    """
    if context.invoked_subcommand is not None:
        return
    now, rows = finish(list_runs(states_option(state), name, rule, owner, since, limit))
    if as_json:
        print_json(rows)
        return
    actions_table(rows, now, "no action is dead" if state == "dead" else "no such actions")


def show(action: ActionId, as_json: Json = False) -> None:
    """Show an action with every attempt of every step: when, how long, what came of it.

    \b
    Example:
      tocsin actions show 3f2a91c0
    """
    row, attempts = finish(_show(action))
    print_action(row, attempts, as_json)


def retry(action: ActionId, by: CreatedBy = None, as_json: Json = False) -> None:
    """Try an action on the dead-letter list again, from where it failed.

    \b
    Example:
      tocsin actions retry 3f2a91c0
    """
    row, steps = finish(_retry(action, by or current_user()))
    if as_json:
        print_json({"action": row["id"], "steps": steps})
        return
    tried = "step " + ", ".join(map(str, steps))
    typer.echo(printable(f"action {str(row['id'])[:8]} ({row['name']}) runs again, {tried} is due"))


def cancel(action: ActionId, by: CreatedBy = None, as_json: Json = False) -> None:
    """Cancel an action that is under way: what it waits for is forgotten, what it does now takes no effect.

    \b
    Example:
      tocsin actions cancel 3f2a91c0
    """
    row = finish(_cancel(action, by or current_user()))
    if as_json:
        print_json({"action": row["id"], "state": "cancelled"})
        return
    typer.echo(printable(f"cancelled action {str(row['id'])[:8]} ({row['name']})"))


async def list_runs(
    states: tuple[str, ...] | None,
    name: str | None,
    rule: str | None,
    owner: str | None,
    since: str | None,
    limit: int,
) -> tuple[datetime, list[dict[str, Any]]]:
    from rules.actions import history
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        now = await database_now(connection)
        from_at = None if since is None else instant_or_ago(since, "--since", now)
        rows = await history.list_runs(
            connection, states=states, name=name, rule=rule, owner=owner, since=from_at, limit=limit
        )
        return now, rows


async def _show(action: str) -> tuple[dict[str, Any], list[Attempt]]:
    from rules.actions.history import find_run, read_attempts
    from tocsin.cli.session import database

    async with database() as connection:
        row = await find_run(connection, action)
        return row, await read_attempts(connection, row)


async def _retry(action: str, who: str) -> tuple[dict[str, Any], list[int]]:
    from rules.actions.history import find_run
    from rules.actions.retry import retry_run
    from tocsin.cli.session import command_actor, database

    async with database() as connection:
        row = await find_run(connection, action)
        return row, await retry_run(connection, row["id"], await command_actor(connection, who))


async def _cancel(action: str, who: str) -> dict[str, Any]:
    from rules.actions.cancel import cancel_run
    from rules.actions.history import find_run
    from tocsin.cli.session import command_actor, database

    async with database() as connection:
        row = await find_run(connection, action)
        await cancel_run(connection, row["id"], await command_actor(connection, who))
        return row
