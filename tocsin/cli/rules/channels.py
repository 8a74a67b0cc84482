"""`tocsin channels test`: a message that says it is a test, sent the way that every notification goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json, current_user
from tocsin.cli.output import print_json, printable

if TYPE_CHECKING:
    from rules.delivery.outcome import DeliveryOutcome


def try_channel(
    name: Annotated[str, typer.Argument(help="Name of the channel.")],
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Send what it gets when an alarm resolves.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Send a test message through a channel, from this host, with the secrets of this environment.

    \b
    Example:
      tocsin channels test ops
    """
    is_enabled, outcome = finish(_try(name, resolved))
    if as_json:
        print_json({"channel": name, "enabled": is_enabled, "state": outcome.state, "text": outcome.text})
    else:
        said = {"delivered": "sent", "retryable": "not sent, and worth another try"}
        typer.echo(printable(f"{said.get(outcome.state, 'not sent')}: {outcome.text}"))
        if not is_enabled:
            typer.echo("the channel is not enabled: alarms do not use it")
    if outcome.state != "delivered":
        raise typer.Exit(1)


async def _try(name: str, resolved: bool) -> tuple[bool, DeliveryOutcome]:
    from rules.actions.channels import read_channel, send_test
    from rules.delivery.egress import Egress
    from timers.working_set import database_now
    from tocsin.cli.session import command_settings, database

    settings = command_settings()
    async with database(settings) as connection:
        channel = await read_channel(connection, name)
        now = await database_now(connection)
    outcome = await send_test(
        Egress.of(settings), channel, "resolved" if resolved else "opened", now, current_user()
    )
    return channel.enabled, outcome
