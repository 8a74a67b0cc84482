"""Helpers for the tests of services that use Tocsin: records to call handlers with, and a system.

Guarantees: `make_event` and `make_step` return records that a consumer could receive. Inside
`tocsin_system` a whole instance runs on embedded servers, with its own database and namespace, and
is ready: its streams exist, the publisher leads and the workers read. Its clock stands still, and
fires only what the test advances it over, so that a test of a day takes milliseconds.

Why the test drives the clock: a schedule in an hour could not be tested with one that runs. Alarms
follow the arrival of datapoints, which nothing can advance: `tocsin test` covers them.

pytest fixtures are in `tocsin.client.pytest_plugin`.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from cdc.publisher import Publisher
from clock.registry import KINDS
from clock.term import Term, begin_term
from clock.time_source import wall_now
from migrations.movable_time import let_sessions_set_time
from migrations.roles.create import create_roles
from migrations.runner import migrate
from rules.apply import apply
from rules.documents.load import load_files
from rules.worker import Worker
from schemas.wire.event import Event
from schemas.wire.step import ActionStep
from timers.working_set import database_now
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, fetch_value, open_session, statement
from tocsin.core.errors import Unreachable
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.embedded import Servers, embedded_servers

__all__ = ["Servers", "TocsinSystem", "embedded_servers", "make_event", "make_step", "tocsin_system"]

_SOURCE = "tocsin/test"
_TICKS = [kind for kind in KINDS if kind.kind == "schedule-tick"]
_OTHERS = [kind for kind in KINDS if kind.kind != "schedule-tick"]
_READY_WITHIN_S = 60.0
_POLL_S = 0.02


def make_event(
    type: str = "schedule-fired", payload: Mapping[str, Any] | None = None, **fields: Any
) -> Event:
    """An event as a consumer receives it. `fields` replace those of the message, by their names."""
    now = wall_now()
    id = fields.pop("id", None) or uuid.uuid4()
    message = {
        "specversion": "1.0",
        "id": id,
        "source": _SOURCE,
        "type": type,
        "time": now,
        "datacontenttype": "application/json",
        "seq": 1,
        "origin": "scheduled" if type == "schedule-fired" else "external",
        "recordedat": now,
        "correlationid": id,
        "data": dict(payload or {}),
    }
    return Event.model_validate({**message, **_known(Event, fields)})


def make_step(
    action: str, state: str = "due", data: Mapping[str, Any] | None = None, **fields: Any
) -> ActionStep:
    """A step of an action as a consumer receives it."""
    message = {
        "specversion": "1.0",
        "id": uuid.uuid4(),
        "source": _SOURCE,
        "type": f"action-step-{state}",
        "time": wall_now(),
        "datacontenttype": "application/json",
        "seq": 1,
        "correlationid": uuid.uuid4(),
        "action": action,
        "actionid": uuid.uuid4(),
        "step": 0,
        "attempt": 1,
        "state": state,
        "data": dict(data or {}),
    }
    return ActionStep.model_validate({**message, **_known(ActionStep, fields)})


def _known(model: type[Event] | type[ActionStep], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Records accept unknown fields of newer versions. In a test they are mistakes."""
    unknown = sorted(fields.keys() - model.model_fields.keys())
    if unknown:
        raise TypeError(
            f"{model.__name__} has no {', '.join(unknown)}: it has {', '.join(model.model_fields)}"
        )
    return fields


@dataclass
class TocsinSystem:
    """A running instance. `postgres` and `nats` are the addresses for the service under test."""

    settings: Settings
    now: datetime
    """The instant up to which everything has fired."""

    @property
    def postgres(self) -> str:
        return self.settings.postgres

    @property
    def nats(self) -> str:
        return self.settings.nats

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a service or `tocsin` finds the instance."""
        return {
            "TOCSIN_POSTGRES": self.postgres,
            "TOCSIN_NATS": self.nats,
            "TOCSIN_NAMESPACE": self.settings.namespace,
        }

    async def apply(self, *files: Path) -> None:
        """Apply rule files."""
        async with open_session(self.settings, "test") as connection:
            loaded = load_files(files, anchor=self.now)
            await apply(connection, loaded, Actor("test", "test", self.now))

    async def advance(self, by: timedelta) -> int:
        """Move the clock on, and fire what comes due meanwhile, each at its own instant.

        Returns the number of fires of schedules. Waits of runbooks that are due fire as well. They
        began in the time of the database, because the worker does not follow this clock. Timers of
        alarms are held, because they follow the arrivals of datapoints.
        """
        return await self.advance_to(self.now + by)

    async def advance_to(self, until: datetime) -> int:
        fires = 0
        async with open_session(self.settings, "test clock") as connection:
            ticks = await begin_term(connection, "test", kinds=_TICKS)
            others = Term(connection, ticks.epoch, kinds=_OTHERS)
            after = datetime.min.replace(tzinfo=UTC)
            while (due := await _next_due(connection, after)) is not None and due <= until:
                at = max(due, self.now)
                fired, woken = await ticks.run_once(at), await others.run_once(at)
                fires += fired.fires
                # A timer that is held stays where it is.
                after = after if fired.timers or woken.timers else due
        self.now = max(self.now, until)
        return fires

    async def set_now(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Let the SQL functions of Tocsin on a connection use the time of this system."""
        await connection.execute(statement("tocsin.client/set_now"), {"now": self.now.isoformat()})


@contextmanager
def tocsin_system(servers: Servers, namespace: str | None = None) -> Iterator[TocsinSystem]:
    """A new instance on running servers (`embedded_servers`). Its services stop with the block."""
    name = namespace or f"test_{uuid.uuid4().hex[:12]}"
    postgres = _new_database(servers.postgres_url, name)
    settings = Settings(
        postgres=postgres, nats=servers.nats_url, namespace=name, lease_ttl_s=10.0, postgres_roles=True
    )
    now = asyncio.run(_prepare(settings))
    services = _ServicesThread(settings)
    services.start()
    try:
        services.wait_until_ready()
        yield TocsinSystem(settings, now)
    finally:
        services.stop()


def _new_database(url: str, name: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        create = psycopg.sql.SQL(statement("tocsin.client/create_test_database").decode())
        connection.execute(create.format(psycopg.sql.Identifier(name)))
    return psycopg.conninfo.make_conninfo(url, dbname=name)


async def _prepare(settings: Settings) -> datetime:
    async with open_session(settings, "test") as connection:
        await migrate(connection)
        await let_sessions_set_time(connection)
        await create_roles(connection)
        return await database_now(connection)


async def _next_due(connection: Connection, after: datetime) -> datetime | None:
    due: datetime | None = await fetch_value(connection, "tocsin.client/find_next_due", {"after": after})
    return due


class _ServicesThread(threading.Thread):
    """The publisher and a worker, on an event loop of their own."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(name="tocsin-services", daemon=True)
        self._services = [
            Service("cdc", Publisher(settings).run),
            Service("worker", Worker(settings).run),
        ]
        self._ready, self._stopping = threading.Event(), threading.Event()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        async with running(*self._services):
            while not self._stopping.is_set():
                if all(service.problem is None for service in self._services):
                    self._ready.set()
                await asyncio.sleep(_POLL_S)

    def wait_until_ready(self) -> None:
        if not self._ready.wait(_READY_WITHIN_S):
            problems = [f"{service.name}: {service.problem}" for service in self._services if service.problem]
            raise Unreachable(f"the services did not become ready ({'; '.join(problems)})")

    def stop(self) -> None:
        self._stopping.set()
        self.join()
