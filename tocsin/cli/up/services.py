"""Does the work of `up`: prepares the database, applies the rules, runs the services, watches the
servers.

Guarantees: the services start only after the database is migrated and all rule files are applied. A
signal, a closed output or a server that stops ends `up`; the services are stopped first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import structlog

from cdc.log_reader import LogReader
from migrations.roles.create import create_roles
from migrations.runner import migrate
from timers.schedules import list_schedules
from timers.working_set import database_now
from tocsin.api.access.sessions import add_login_link
from tocsin.api.service import Api, listen
from tocsin.cli.metrics import metrics_endpoint
from tocsin.cli.options import current_user
from tocsin.cli.output import printable, title
from tocsin.cli.rules.apply import apply_files
from tocsin.cli.run import make_service, stop_on_signals
from tocsin.cli.served import SERVED
from tocsin.cli.streams import create_streams
from tocsin.cli.up.feed import Feed
from tocsin.cli.up.screen import screen_for
from tocsin.cli.up.view import ViewState
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection, fetch_one, open_session, statement
from tocsin.core.errors import Refused, Unreachable
from tocsin.core.listen_address import ListenAddress
from tocsin.core.service import Service
from tocsin.core.settings import Settings, read_settings
from tocsin.embedded import Servers
from tocsin.nats_access.roles import inbox_of
from tocsin.policy import AccessRole, Grant

_log = structlog.get_logger()
_DATABASE = "tocsin"
_POLL_S = 0.25
_STOP_WITHIN_S = 1.0
_OVERDUE_NAMED = 5
_NO_TRANSPORT: dict[str, object] = {
    **dict.fromkeys(
        ("nats_user", "nats_password", "nats_creds", "nats_nkey", "nats_ca", "nats_cert", "nats_key"), ""
    ),
    "nats_api": "$JS.API",
}


def database_url(server_url: str) -> str:
    """The URL of the database of `up` on its server, for people to copy."""
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{_DATABASE}"))


def own_settings(servers: Servers, postgres: str, user: str) -> Settings:
    """The settings of a user of the servers of `up`. Those of the environment name other servers."""
    return read_settings(
        postgres=postgres, nats=servers.nats.url_of(user), nats_inbox=inbox_of(user), **_NO_TRANSPORT
    )


async def serve(
    servers: Servers, settings: Settings, data: Path, rules: Sequence[Path], interrupted: Sequence[int] = ()
) -> None:
    """`interrupted` has the signals that arrived before the event loop handled them."""
    stop = asyncio.Event()
    stop_on_signals(stop)
    if interrupted:
        return
    await _ensure_database(servers)
    state = ViewState(
        version=version("tocsin"),
        postgres=settings.postgres,
        nats=servers.nats.shown_url,
        data=str(data),
        log=str(data / "tocsin.log"),
    )
    async with open_session(settings, "up") as connection:
        await migrate(connection)
        await create_roles(connection)
        await _create_streams(connection, servers, settings)
        head = await LogReader(connection).head()
        notes = [await _start_text(connection, head)]
        if rules:
            notes.append(await _apply(connection, rules))
    if settings.metrics:
        notes.append(f"metrics: http://{settings.metrics}/metrics")
    if stop.is_set():
        return
    settings = settings.model_copy(update={"postgres_roles": True})
    services = [
        make_service(settings.model_copy(update=_user(servers, role)), role)
        for role in ("clock", "cdc", "worker")
    ]
    with ExitStack() as stack:
        if settings.api:
            api = stack.enter_context(_listening_api(settings.model_copy(update=_user(servers, "api"))))
            services.append(Service("api", api.run))
            state.api = api.url
            notes.append(
                f"console: {api.url}/login?code={await _login_code(settings)}  (once, within ten minutes)"
            )
        await _serve_all(servers, settings, state, services, notes, head, stop)


async def _serve_all(
    servers: Servers,
    settings: Settings,
    state: ViewState,
    services: Sequence[Service],
    notes: Sequence[str],
    head: int,
    stop: asyncio.Event,
) -> None:
    async with metrics_endpoint(settings, services):
        with screen_for(state) as screen:
            for note in notes:
                screen.say(note)
            await _run(servers, Feed(settings, screen, state, head), services, stop)


@contextmanager
def _listening_api(settings: Settings) -> Iterator[Api]:
    """The API on its address; on a free port of loopback if the default address is in use."""
    try:
        listening = listen(settings)
        taken = listening.__enter__()
    except Refused:
        if "api" in settings.model_fields_set:
            raise
        listening = listen(settings, ListenAddress.parse("127.0.0.1:0"))
        taken = listening.__enter__()
    try:
        yield Api(settings, taken, SERVED)
    finally:
        listening.__exit__(None, None, None)


async def _login_code(settings: Settings) -> str:
    """A one-time code for the person who started `up`."""
    async with open_session(settings, "up") as connection:
        grants = [Grant(AccessRole.ADMIN, "*")]
        return await add_login_link(connection, current_user(), grants, current_user(), "up")


async def _run(servers: Servers, feed: Feed, services: Sequence[Service], stop: asyncio.Event) -> None:
    feeds = [
        Service("follow stream", feed.follow_stream),
        Service("refresh state", lambda: feed.refresh_state(services)),
    ]
    ends = [
        asyncio.create_task(end) for end in (stop.wait(), feed.closed.wait(), _until_server_stops(servers))
    ]
    try:
        for service in (*services, *feeds):
            service.start()
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in done:
            end.result()
    finally:
        for end in ends:
            end.cancel()
        await _stop(*feeds, *services)


async def _stop(*services: Service) -> None:
    """Stop all at once. A service that takes too long is cancelled again when the event loop ends."""
    stops = {asyncio.create_task(service.stop(), name=service.name) for service in services}
    _, late = await asyncio.wait(stops, timeout=_STOP_WITHIN_S)
    if late:
        _log.warning("services did not stop in time", services=sorted(stop.get_name() for stop in late))


async def _until_server_stops(servers: Servers) -> bool:
    while True:
        for server in (servers.postgres, servers.nats):
            if not server.alive:
                raise Unreachable(
                    f"{server.name} has stopped, its log is '{server.log_path}'",
                    remedy="start `tocsin up` again",
                )
        await asyncio.sleep(_POLL_S)


async def _ensure_database(servers: Servers) -> None:
    async with open_session(Settings(postgres=servers.postgres_url), "up") as connection:
        if await fetch_one(connection, "tocsin.cli/find_database") is None:
            await connection.execute(statement("tocsin.cli/create_database"))


async def _create_streams(connection: Connection, servers: Servers, settings: Settings) -> None:
    """As the user that may do everything: the services may not create streams."""
    everything = settings.model_copy(update={"nats": servers.nats_url, "nats_inbox": "_INBOX"})
    async with open_bus(everything, "up") as bus:
        await create_streams(connection, bus, everything)


def _user(servers: Servers, role: str) -> dict[str, str]:
    return {"nats": servers.nats.url_of(role), "nats_inbox": inbox_of(role)}


async def _start_text(connection: Connection, head: int) -> str:
    """The seq at which the record log continues, and the schedules that came due during the stop."""
    if head == 0:
        return "new record log, starting at seq 1"
    now = await database_now(connection)
    rows = await list_schedules(connection, status="active", limit=1000)
    overdue = [title(row["owner"], row["name"]) for row in rows if row["fire_at"] and row["fire_at"] < now]
    return f"continuing at seq {head + 1}; {_overdue_text(overdue)}"


def _overdue_text(schedules: Sequence[str]) -> str:
    if not schedules:
        return "nothing came due meanwhile"
    more = f" and {len(schedules) - _OVERDUE_NAMED} more" if len(schedules) > _OVERDUE_NAMED else ""
    return f"came due meanwhile: {printable(', '.join(schedules[:_OVERDUE_NAMED]))}{more}"


async def _apply(connection: Connection, rules: Sequence[Path]) -> str:
    applied = await apply_files(connection, rules, current_user(), via="up")
    counts = ", ".join(f"{count} {outcome}" for outcome, count in applied.plan.counts().items())
    return f"rules: {', '.join(map(str, rules))}: {counts}"
