"""`tocsin tail`: follows the record stream, one line per record. Reads only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import OnlyOwner, instant_or_ago
from tocsin.cli.output import compact, printable, title
from tocsin.cli.records.filters import Rule, Type, check_filters
from tocsin.cli.records.foreign_messages import NOT_A_RECORD_ERRORS, foreign_text
from tocsin.core.errors import InvalidInput
from tocsin.core.printable import plain_json

if TYPE_CHECKING:
    from nats.aio.client import Client

    from tocsin.core.settings import Settings


def tail(
    from_seq: Annotated[
        int | None, typer.Option("--from-seq", min=1, help="Begin at this seq, not at the next record.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Begin with the records since: 10m ago, or an instant."),
    ] = None,
    owner: OnlyOwner = None,
    rule: Rule = None,
    type_: Type = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="End after this many records.")
    ] = None,
    as_json_lines: Annotated[
        bool,
        typer.Option("--json-lines", help="Print each record as a CloudEvent, one JSON object per line."),
    ] = False,
) -> None:
    """Follow the record stream; Ctrl-C ends it.

    \b
    Examples:
      tocsin tail --since 10m
      tocsin tail --owner plant-7 --type alarm-opened --json-lines
    """
    if since is not None and from_seq is not None:
        raise InvalidInput("--since and --from-seq exclude each other", remedy="keep one of them")
    check_filters(type_, owner=owner, rule=rule)
    filters = {"owner": owner, "rule": rule, "type": type_}
    wanted = {key: value for key, value in filters.items() if value is not None}
    try:
        run_command(_tail(from_seq, since, wanted, count, as_json_lines))
    except KeyboardInterrupt:
        # Ctrl-C is the normal end of this command.
        raise typer.Exit(0) from None


async def _tail(
    from_seq: int | None, since: str | None, wanted: Mapping[str, str], count: int | None, as_json_lines: bool
) -> None:
    from tocsin.cli.session import command_settings, message_bus
    from tocsin.client._follow import follow, last_sequence_of

    settings = command_settings()
    async with message_bus(settings) as bus:
        last = await last_sequence_of(bus, settings.stream)
        after = last if from_seq is None else from_seq - 1
        if since is not None and last:
            after = await _last_seq_before(bus, settings, since)
        if not as_json_lines:
            typer.echo(f"following {settings.stream!r} from seq {after + 1} (its last is {last})", err=True)
        shown = 0
        async for message in follow(bus, settings.stream, after):
            if wanted and not _matches(message.data, wanted):
                continue
            seq = message.metadata.sequence.stream
            typer.echo(_json_line(message.data) if as_json_lines else record_line(seq, message.data))
            shown += 1
            if shown == count:
                return


async def _last_seq_before(bus: Client, settings: Settings, since: str) -> int:
    from clock.time_source import wall_now
    from tocsin.client._start_position import find_start

    instant = instant_or_ago(since, "--since", wall_now())
    return (await find_start(bus.jetstream(), settings.stream, instant)).seq


def _matches(data: bytes, wanted: Mapping[str, str]) -> bool:
    """A key that a record lacks is empty, as in the record log. Foreign messages match no filter."""
    try:
        body = json.loads(data)
        return all(body.get(key, "") == value for key, value in wanted.items())
    except NOT_A_RECORD_ERRORS:
        return False


def _json_line(data: bytes) -> str:
    return plain_json(data.decode(errors="backslashreplace"))


def record_line(seq: int, data: bytes) -> str:
    try:
        parts = _parts(json.loads(data))
    except NOT_A_RECORD_ERRORS:
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
