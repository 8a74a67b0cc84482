"""`tocsin emit`: sends an event.

Guarantee: when it returns, JetStream has stored the event. An event that a worker would reject is
rejected here, with the same error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, instant_option, json_object
from tocsin.cli.output import print_json
from tocsin.cli.remote.over_http import over_http
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from uuid import UUID

_TIMEOUT_S = 5.0


def emit(
    type: Annotated[str, typer.Argument(help="Type of the event, such as order-shipped.")],
    owner: Annotated[str, typer.Option("--owner", help="Owner of the event; none by default.")] = "",
    payload: Annotated[str, typer.Option("--payload", help="A JSON object.")] = "{}",
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key: an event with the same key is stored once.")
    ] = None,
    severity: Annotated[str | None, typer.Option("--severity", help="Severity, such as high.")] = None,
    ts: Annotated[
        str | None,
        typer.Option("--ts", help="Instant of the event, such as 2026-03-07T00:00Z; now by default."),
    ] = None,
    correlation_id: Annotated[
        str | None, typer.Option("--correlation-id", help="UUID that related records share.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Send one event.

    Rules see it with the origin "external".

    \b
    Example:
      tocsin emit order-shipped --owner plant-7 --payload '{"order": 17}' --key order-17/shipped
    """
    event_id = run_command(
        _emit(
            type,
            owner=owner,
            payload=json_object(payload, "--payload"),
            key=key,
            severity=severity,
            ts=None if ts is None else instant_option(ts, "--ts"),
            correlation_id=_parse_uuid(correlation_id),
        )
    )
    if as_json:
        print_json({"id": event_id})
    else:
        typer.echo(f"sent event {type}, ID {event_id}")


def _parse_uuid(text: str | None) -> UUID | None:
    from uuid import UUID

    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise InvalidInput(
            f"--correlation-id {text!r} is not a UUID", remedy="copy it from an event"
        ) from None


@over_http("instance.emit")
async def _emit(type: str, **fields: Any) -> UUID:
    from tocsin.cli.session import command_settings
    from tocsin.client.producer import Producer

    async with Producer(command_settings(), timeout_s=_TIMEOUT_S) as producer:
        return await producer.emit(type, **fields)
