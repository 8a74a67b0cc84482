"""`tocsin streams`: creates the streams in NATS, and writes the permissions of the NATS users.

Running services may not create or change streams where the permissions of `deploy/nats` hold: a
stream that republishes could write records. So an administrator creates them once, and again after an
update that changes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js.api import StreamConfig

    from tocsin.core.db import Connection
    from tocsin.core.settings import Settings
    from tocsin.nats_access.roles import NatsRole


def create(as_json: Json = False) -> None:
    """Create the streams and buckets of this namespace, or bring them up to date.

    The NATS user needs the rights of `admin` in deploy/nats/permissions.conf. Run it after `tocsin migrate`.

    \b
    Example:
      TOCSIN_NATS=tls://admin:secret@nats.example:4222 TOCSIN_NATS_INBOX=_INBOX_admin tocsin streams create
    """
    outcomes = run_command(_create())
    if as_json:
        print_json(outcomes)
        return
    for name, outcome in outcomes.items():
        typer.echo(f"{outcome:<9}  {name}")


def config(
    producer: Annotated[
        list[str] | None,
        typer.Option("--producer", help="A user that sends datapoints of the owner with this name."),
    ] = None,
    service: Annotated[
        list[str] | None,
        typer.Option(
            "--service", help="A user that consumes: NAME, or NAME=SUBJECT[,SUBJECT...] to read less."
        ),
    ] = None,
    handler: Annotated[
        list[str] | None,
        typer.Option("--handler", help="A user that takes dispatched steps: NAME=SUBJECT[,SUBJECT...]."),
    ] = None,
) -> None:
    """Print NATS accounts and permissions for the components and for your producers and services.

    The output is a file for `include` in nats.conf. Passwords are variables of the environment of the server.

    \b
    Example:
      tocsin streams config --producer plant-7 --service billing
    """
    from tocsin.cli.session import current_settings
    from tocsin.nats_access.example import permissions_file

    namespace = current_settings().namespace
    handlers = [_named(text) for text in handler or ()]
    published = [subject for _, subjects in handlers for subject in subjects]
    roles = _roles(namespace, producer or (), [_named(text) for text in service or ()], handlers)
    typer.echo(permissions_file(namespace, roles, published), nl=False)


def _roles(
    namespace: str,
    producers: list[str] | tuple[str, ...],
    services: list[tuple[str, list[str]]],
    handlers: list[tuple[str, list[str]]],
) -> list[NatsRole]:
    from schemas.wire.subjects import token
    from tocsin.core.errors import InvalidInput
    from tocsin.nats_access import roles

    published = [subject for _, subjects in handlers for subject in subjects]
    chosen = [
        *roles.component_roles(namespace, published),
        *(roles.producer(namespace, name, [token(name)]) for name in producers),
        *(roles.consumer(namespace, name, subjects) for name, subjects in services),
        *(roles.handler(namespace, name, subjects) for name, subjects in handlers),
    ]
    names = [role.name for role in chosen]
    for name in names:
        if not roles.is_user_name(name):
            raise InvalidInput(
                f"the user {name!r} cannot be written into the configuration of NATS",
                remedy="use 1 to 64 letters, digits, '-' and '_'",
            )
        if names.count(name) > 1:
            raise InvalidInput(f"there are two users {name!r}", remedy="choose another name")
    return chosen


def _named(text: str) -> tuple[str, list[str]]:
    import re

    from tocsin.core.errors import InvalidInput

    name, _, subjects = text.partition("=")
    found = [subject for subject in subjects.split(",") if subject]
    for subject in found:
        if not re.fullmatch(r"[!#-~]+", subject):
            raise InvalidInput(f"{subject!r} is not a subject", remedy="write one such as 'reports.>'")
    return name, found


async def _create() -> dict[str, str]:
    from tocsin.cli.session import admin_settings, database, message_bus

    settings = admin_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        return await create_streams(connection, bus, settings)


async def create_streams(connection: Connection, bus: Client, settings: Settings) -> dict[str, str]:
    """Create the streams, or change what differs. Returns what was done with each."""
    from tocsin.core.streams import bring_up_to_date

    js = bus.jetstream(timeout=10)
    return {
        str(wanted.name): await bring_up_to_date(js, wanted)
        for wanted in await wanted_streams(connection, settings)
    }


async def wanted_streams(connection: Connection, settings: Settings) -> list[StreamConfig]:
    """All streams. New ones continue the sequences that the database knows."""
    from cdc.log_reader import LogReader
    from cdc.stream import record_stream_config
    from clock.lease import lease_bucket_config
    from rules.actions.reports import report_stream_config
    from rules.lanes.data_stream import data_stream_config, refuse_other_partitions
    from rules.lanes.dead_letters import dead_stream_config
    from rules.lanes.external_events import ingest_stream_config
    from tocsin.client.consume import consumer_streams
    from tocsin.core.db import fetch_one

    partitions, last_read = await fetch_one(connection, "rules.lanes/read_data_lane")
    refuse_other_partitions(settings, partitions or settings.data_partitions)
    return [
        record_stream_config(settings, await LogReader(connection).horizon()),
        data_stream_config(settings, last_read + 1),
        ingest_stream_config(settings),
        report_stream_config(settings),
        dead_stream_config(settings),
        lease_bucket_config(settings),
        *consumer_streams(settings.namespace, settings.stream_replicas),
    ]
