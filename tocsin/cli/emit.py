"""`tocsin emit`: sends an event.

Guarantee: when it returns, JetStream has stored the event. An event that a worker would reject is
rejected here, with the same error.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json, instant_option
from tocsin.cli.output import print_json
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from uuid import UUID

_PATIENCE_S = 5.0


def emit(
    type: Annotated[str, typer.Argument(help="What happened, such as order-shipped.")],
    owner: Annotated[str, typer.Option("--owner", help="Whom it concerns; nobody by default.")] = "",
    payload: Annotated[str, typer.Option("--payload", help="A JSON object.")] = "{}",
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key: the same one again is the same event.")
    ] = None,
    severity: Annotated[str | None, typer.Option("--severity", help="A level, such as high.")] = None,
    ts: Annotated[
        str | None, typer.Option("--ts", help="When it happened, such as 2026-03-07T00:00Z; now.")
    ] = None,
    correlation_id: Annotated[
        str | None, typer.Option("--correlation-id", help="UUID shared by everything that one cause led to.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Hand in one event; rules see it as origin "external".

    \b
    Example:
      tocsin emit order-shipped --owner plant-7 --payload '{"order": 17}' --key order-17/shipped
    """
    id = finish(
        _emit(
            type,
            owner=owner,
            payload=_payload(payload),
            key=key,
            severity=severity,
            ts=None if ts is None else instant_option(ts, "--ts"),
            correlation_id=_uuid(correlation_id),
        )
    )
    if as_json:
        print_json({"id": id})
    else:
        typer.echo(f"handed in {type}, event {id}")


def _payload(text: str) -> dict[str, Any]:
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"--payload is not JSON ({error}): write an object, such as '{{\"a\": 1}}'"
        ) from None
    if not isinstance(payload, dict):
        raise InvalidInput(f"--payload {text!r} is not an object: write one, such as '{{\"a\": 1}}'")
    return payload


def _uuid(text: str | None) -> UUID | None:
    from uuid import UUID

    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise InvalidInput(
            f"--correlation-id {text!r} is not a UUID", remedy="copy it from an event"
        ) from None


async def _emit(type: str, **fields: Any) -> UUID:
    from tocsin.cli.session import command_settings
    from tocsin.client.producer import Producer

    async with Producer(command_settings(), timeout_s=_PATIENCE_S) as producer:
        return await producer.emit(type, **fields)
