"""`tocsin channels`: lists channels. `tocsin channels test`: sends a test message through one.

Guarantee: the list shows no secret. Of an address it shows the host, of a secret its reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, current_user
from tocsin.cli.output import print_json, print_table, printable
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from rules.delivery.outcome import DeliveryOutcome


def channels(context: typer.Context, as_json: Json = False) -> None:
    """List the channels that are applied, or test one.

    \b
    Examples:
      tocsin channels
      tocsin channels test ops
    """
    if context.invoked_subcommand is not None:
        return
    rows = run_command(_channels())
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no channels are applied: write a `channel` document and `tocsin apply` it")
        return
    print_table(
        ("NAME", "TYPE", "TARGET", "ENABLED", "SENDS RESOLVED"),
        (
            (
                row["name"],
                row["type"],
                row["target"],
                "yes" if row["enabled"] else "no",
                "yes" if row["send_resolved"] else "no",
            )
            for row in rows
        ),
    )


def send_test_message(
    name: Annotated[str, typer.Argument(help="Name of the channel.")],
    transition: Annotated[
        str,
        typer.Option(
            "--transition",
            help="Send the message of this transition: opened, changed, resolved, acknowledged, snoozed, unsnoozed, "
            "snooze-ended, reminder or silence-ended.",
        ),
    ] = "opened",
    as_json: Json = False,
) -> None:
    """Send a test message through a channel.

    A worker sends it, with its own secrets and from its own host, as it sends notifications.

    \b
    Example:
      tocsin channels test ops --transition resolved
    """
    is_enabled, outcome = run_command(_test(name, transition))
    if as_json:
        print_json({"channel": name, "enabled": is_enabled, "state": outcome.state, "text": outcome.text})
    else:
        states = {"delivered": "sent", "retryable": "not sent, a retry may succeed"}
        typer.echo(printable(f"{states.get(outcome.state, 'not sent')}: {outcome.text}"))
        if not is_enabled:
            typer.echo("the channel is not enabled: alarms do not use it")
    if outcome.state != "delivered":
        raise typer.Exit(1)


async def _channels() -> list[dict[str, Any]]:
    from rules.documents.applied import list_channels
    from tocsin.cli.session import database

    async with database() as connection:
        return await list_channels(connection)


async def _test(name: str, transition: str) -> tuple[bool, DeliveryOutcome]:
    from rules.actions.channel_tests import await_outcome, request_test
    from rules.actions.channels import read_channel
    from rules.delivery.alarm_facts import KINDS
    from tocsin.cli.access import require
    from tocsin.cli.session import database
    from tocsin.policy import Operation

    if transition not in KINDS:
        raise InvalidInput(f"unknown transition {transition!r}", remedy=f"use one of {', '.join(KINDS)}")
    async with database() as connection:
        await require(connection, Operation.TEST_CHANNEL)
        channel = await read_channel(connection, name)
        id = await request_test(connection, name, transition, current_user())
        return channel.enabled, await await_outcome(connection, id)
