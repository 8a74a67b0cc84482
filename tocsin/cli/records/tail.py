"""`tocsin tail`: the record stream as it happens, from JetStream, one line per record."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json
from tocsin.cli.output import compact, printable, title
from tocsin.cli.records.foreign_messages import NO_RECORD, foreign_text


def tail(
    from_seq: Annotated[
        int | None, typer.Option("--from-seq", min=1, help="Begin at this seq; at the next one by default.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="End after this many; never by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Follow the stream of events and action steps; Ctrl-C ends it. With --json, one CloudEvent per line.

    \b
    Example:
      tocsin tail --from-seq 1
    """
    try:
        finish(_tail(from_seq, count, as_json))
    except KeyboardInterrupt:
        # Ctrl-C is how a person says that they have seen enough.
        raise typer.Exit(0) from None


async def _tail(from_seq: int | None, count: int | None, as_json: bool) -> None:
    from tocsin.cli.session import command_settings, message_bus
    from tocsin.client._follow import follow, last_sequence_of

    settings = command_settings()
    async with message_bus(settings) as bus:
        last = await last_sequence_of(bus, settings.stream)
        after = last if from_seq is None else from_seq - 1
        if not as_json:
            typer.echo(f"following {settings.stream!r} from seq {after + 1} (its last is {last})", err=True)
        shown = 0
        async for message in follow(bus, settings.stream, after):
            seq = message.metadata.sequence.stream
            typer.echo(message.data if as_json else record_line(seq, message.data))
            shown += 1
            if shown == count:
                return


def record_line(seq: int, data: bytes) -> str:
    try:
        parts = _parts(json.loads(data))
    except NO_RECORD:
        parts = [foreign_text(data)]
    return printable("  ".join((str(seq), *filter(None, parts))))


def _parts(body: dict[str, Any]) -> list[str]:
    name = body.get("schedule") or body.get("rule") or body.get("action") or body.get("key") or ""
    return [
        body.get("time", ""),
        body.get("origin") or body.get("kind") or "action",
        body["type"],
        title(body.get("owner", ""), name),
        compact(body["data"]),
    ]
