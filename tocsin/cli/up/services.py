"""The inside of `up`: prepare the database, apply the rules, run the services, watch the servers.

Guarantee: services start only when the database is migrated and every rules file is right. The end comes by a
signal, by a closed output, or by a server that died; in each case the services are stopped first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import structlog

from cdc.log_reader import LogReader
from migrations.runner import migrate
from timers.schedules import list_schedules
from timers.working_set import database_now
from tocsin.cli.metrics import metrics_endpoint
from tocsin.cli.options import current_user
from tocsin.cli.output import printable, title
from tocsin.cli.rules.apply import apply_files
from tocsin.cli.run import make_service, stop_on_signals
from tocsin.cli.up.feed import Feed
from tocsin.cli.up.screen import screen_for
from tocsin.cli.up.view import State
from tocsin.core.db import Connection, fetch_one, open_session, statement
from tocsin.core.errors import Unreachable
from tocsin.core.service import Service
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

_log = structlog.get_logger()
_DATABASE = "tocsin"
_WATCH_S = 0.25
_STOP_WITHIN_S = 1.0
_OVERDUE_NAMED = 5


def database_url(server_url: str) -> str:
    """The same server, our own database; still a URL, so that a person can paste it."""
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{_DATABASE}"))


async def serve(
    servers: Servers, settings: Settings, data: Path, rules: Sequence[Path], interrupted: Sequence[int] = ()
) -> None:
    """`interrupted` holds the signals that came before the event loop could take them."""
    stop = asyncio.Event()
    stop_on_signals(stop)
    if interrupted:
        return
    await _ensure_database(servers)
    state = State(
        version=version("tocsin"),
        postgres=settings.postgres,
        nats=settings.nats,
        data=str(data),
        log=str(data / "tocsin.log"),
    )
    async with open_session(settings, "up") as connection:
        await migrate(connection)
        head = await LogReader(connection).head()
        said = [await _where_it_continues(connection, head)]
        if rules:
            said.append(await _apply(connection, rules))
    if settings.metrics:
        said.append(f"metrics: http://{settings.metrics}/metrics")
    if stop.is_set():
        return
    services = [make_service(settings, role) for role in ("clock", "cdc", "worker")]
    async with metrics_endpoint(settings, services):
        with screen_for(state) as screen:
            for text in said:
                screen.say(text)
            await _run(servers, Feed(settings, screen, state, head), services, stop)


async def _run(servers: Servers, feed: Feed, services: Sequence[Service], stop: asyncio.Event) -> None:
    watching = [
        Service("follow", feed.follow_stream),
        Service("look ahead", lambda: feed.look_ahead(services)),
    ]
    ends = [asyncio.create_task(end) for end in (stop.wait(), feed.closed.wait(), _until_dead(servers))]
    try:
        for each in (*services, *watching):
            each.start()
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in done:
            end.result()
    finally:
        for end in ends:
            end.cancel()
        await _stop(*watching, *services)


async def _stop(*services: Service) -> None:
    """Together, and not for ever: what is not done in time is cancelled again when the event loop ends."""
    stops = {asyncio.create_task(each.stop(), name=each.name) for each in services}
    _, late = await asyncio.wait(stops, timeout=_STOP_WITHIN_S)
    if late:
        _log.warning("services did not stop in time", services=sorted(stop.get_name() for stop in late))


async def _until_dead(servers: Servers) -> bool:
    while True:
        for server in (servers.postgres, servers.nats):
            if not server.alive:
                raise Unreachable(
                    f"{server.name} stopped by itself, its log is '{server.log_path}'",
                    remedy="start `tocsin up` again",
                )
        await asyncio.sleep(_WATCH_S)


async def _ensure_database(servers: Servers) -> None:
    async with open_session(Settings(postgres=servers.postgres_url), "up") as connection:
        if await fetch_one(connection, "tocsin.cli/find_database") is None:
            await connection.execute(statement("tocsin.cli/create_database"))


async def _where_it_continues(connection: Connection, head: int) -> str:
    """The log goes on behind `head`, and what came due meanwhile is caught up with."""
    if head == 0:
        return "a new log: it begins at seq 1"
    now = await database_now(connection)
    rows = await list_schedules(connection, status="active", limit=1000)
    ticks = [(row["owner"], row["name"], row["fire_at"]) for row in rows]
    return f"continuing at seq {head + 1}; {_overdue(ticks, now)}"


def _overdue(ticks: Sequence[tuple[str, str, datetime | None]], now: datetime) -> str:
    names = [title(owner, name) for owner, name, fire_at in ticks if fire_at is not None and fire_at < now]
    if not names:
        return "nothing came due while it was away"
    more = f" and {len(names) - _OVERDUE_NAMED} more" if len(names) > _OVERDUE_NAMED else ""
    return f"came due while it was away: {printable(', '.join(names[:_OVERDUE_NAMED]))}{more}"


async def _apply(connection: Connection, rules: Sequence[Path]) -> str:
    applied = await apply_files(connection, rules, current_user(), via="up")
    counts = ", ".join(f"{count} {outcome}" for outcome, count in applied.plan.counts().items())
    return f"rules: {', '.join(map(str, rules))}: {counts}"
