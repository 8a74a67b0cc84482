"""Metrics over HTTP: two paths, and no client can disturb another or the service."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Awaitable, Callable

import psycopg
import pytest
from prometheus_client.openmetrics import parser as openmetrics_parser

from tests.metrics.scrapes import Samples, ask, raw, scrape, served
from tests.sql import one_row
from tests.wait import eventually
from timers.working_set import database_now
from tocsin.core.db import Connection
from tocsin.core.errors import Refused, Unreachable
from tocsin.core.listen_address import ListenAddress
from tocsin.core.metrics import Metrics
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.service import Service, beat, running
from tocsin.core.settings import Settings
from tocsin.metrics import server
from tocsin.metrics.exposition import Exposition
from tocsin.metrics.server import serve_metrics, wants_openmetrics


async def idle() -> None:
    while True:
        beat("loop")
        await asyncio.Event().wait()


def service(run: Callable[[], Awaitable[None]] = idle) -> Service:
    return Service("clock", run)


@pytest.fixture(autouse=True)
def no_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Postgres does not seem to hang on a slow machine, unless a test sets a limit."""
    monkeypatch.setattr("tocsin.metrics.exposition._WAIT_S", 60.0)


async def healthy(exposition: Exposition) -> bool:
    return await exposition.problem() is None


async def unhealthy(exposition: Exposition) -> bool:
    return not await healthy(exposition)


async def test_an_exposition_has_the_process_its_groups_and_the_database(settings: Settings) -> None:
    group = Metrics()
    group.counter("tocsin_fires_total", "help").add(5)
    runs = service()
    exposition = Exposition(settings, [runs], [group])
    async with running(runs), served(exposition) as port:
        await eventually(lambda: healthy(exposition), "it is healthy")
        samples = await scrape(port)
        assert samples("tocsin_fires_total") == 5
        assert samples("tocsin_database_up") == 1
        assert samples("tocsin_service_up", service="clock") == 1
        assert samples("tocsin_service_restarts_total", service="clock") == 0
        assert samples("tocsin_log_head_seq") == 0
        assert await ask(port, "/healthz") == (200, "ok\n")


async def test_while_postgres_is_unreachable_the_process_has_its_own_metrics(settings: Settings) -> None:
    away = settings.model_copy(update={"postgres": "postgresql://user@127.0.0.1:1/none"})
    group = Metrics()
    group.counter("tocsin_fires_total", "help").add(5)
    runs = service()
    async with running(runs), served(Exposition(away, [runs], [group])) as port:
        samples = await scrape(port)
        assert (samples("tocsin_fires_total"), samples("tocsin_database_up")) == (5, 0)
        assert samples.get("tocsin_log_head_seq") is None
        status, reason = await ask(port, "/healthz")
        assert status == 503
        assert reason.startswith("cannot reach postgres at 127.0.0.1:1/none")
        assert reason.count("\n") == 1


async def test_a_postgres_that_hangs_costs_one_session_and_no_response(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.metrics.exposition._WAIT_S", 0.05)
    connected: list[asyncio.StreamWriter] = []
    listener = await asyncio.start_server(lambda _, writer: connected.append(writer), "127.0.0.1", 0)
    port_of_postgres = listener.sockets[0].getsockname()[1]
    hangs = settings.model_copy(update={"postgres": f"postgresql://x@127.0.0.1:{port_of_postgres}/x"})
    exposition = Exposition(hangs, [], [])

    async def is_asked() -> bool:
        assert Samples(await exposition.metrics())("tocsin_database_up") == 0
        return bool(connected)

    await eventually(is_asked, "postgres is connected to")
    for _ in range(3):
        assert await is_asked()
    assert "has not answered" in str(await exposition.problem())
    assert len(connected) == 1
    await exposition.close()
    listener.close()
    for writer in connected:
        writer.close()


async def test_metrics_of_the_database_are_missing_while_postgres_does_not_answer(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.metrics.exposition._INTERVAL_S", 0.0)
    monkeypatch.setattr("tocsin.metrics.exposition._REST_FACTOR", 0.0)
    exposition = Exposition(settings, [], [])
    assert Samples(await exposition.metrics())("tocsin_database_up") == 1
    monkeypatch.setattr("tocsin.metrics.exposition._WAIT_S", 0.05)
    monkeypatch.setattr("tocsin.metrics.exposition.read_database_metrics", lambda _: asyncio.Event().wait())
    samples = Samples(await exposition.metrics())
    assert (samples("tocsin_database_up"), samples.get("tocsin_log_head_seq")) == (0, None)
    assert await exposition.problem() == "postgres has not answered for 0.05 s"
    await exposition.close()


async def test_after_postgres_was_frozen_its_metrics_are_soon_read_again(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.metrics.exposition._INTERVAL_S", 0.1)
    monkeypatch.setattr("tocsin.metrics.exposition._WAIT_S", 0.1)
    monkeypatch.setattr("tocsin.metrics.exposition._MAX_REST_S", 0.1)
    monkeypatch.setattr("tocsin.metrics.exposition._REST_FACTOR", 1e6)
    exposition = Exposition(settings, [], [])
    await eventually(lambda: healthy(exposition), "it has read the database")
    session = "select pid from pg_stat_activity where application_name = 'tocsin metrics'"
    session += " and datname = current_database()"
    pid = (await one_row(connection, session))["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        await eventually(lambda: unhealthy(exposition), "it is noticed")
    finally:
        os.kill(pid, signal.SIGCONT)
    await append_events(connection, [NewEvent(await database_now(connection), "derived", "noted", {})])

    async def shown() -> bool:
        return Samples(await exposition.metrics()).get("tocsin_log_head_seq") == 1

    await eventually(shown, "what was written since is shown")
    await exposition.close()


@pytest.mark.parametrize("error", [ZeroDivisionError("a defect"), psycopg.OperationalError("one\ntwo")])
async def test_any_error_of_the_database_leaves_the_other_metrics(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(_: object) -> Metrics:
        raise error

    monkeypatch.setattr("tocsin.metrics.exposition.read_database_metrics", fail)
    exposition = Exposition(settings, [], [])
    assert Samples(await exposition.metrics())("tocsin_database_up") == 0
    assert await exposition.problem() == str(error).partition("\n")[0]
    await exposition.close()


async def test_the_database_is_read_once_for_all_scrapes_within_a_second(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = 0

    async def read(_: object) -> Metrics:
        nonlocal readings
        readings += 1
        return Metrics()

    monkeypatch.setattr("tocsin.metrics.exposition.read_database_metrics", read)
    monkeypatch.setattr("tocsin.metrics.exposition._INTERVAL_S", 60.0)
    exposition = Exposition(settings, [], [])
    await asyncio.gather(*(exposition.metrics() for _ in range(20)))
    await exposition.metrics()
    assert readings == 1
    monkeypatch.setattr("tocsin.metrics.exposition._INTERVAL_S", 0.0)
    monkeypatch.setattr("tocsin.metrics.exposition._REST_FACTOR", 0.0)
    exposition._fresh_until_s = 0.0
    await exposition.metrics()
    await exposition.metrics()
    assert readings == 3
    await exposition.close()


async def test_a_service_that_fails_or_hangs_is_not_healthy(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise Unreachable("cannot reach nats at nowhere: start it")

    failing = service(fail)
    exposition = Exposition(settings, [failing], [])
    async with running(failing), served(exposition) as port:
        await eventually(lambda: _has_failed(failing), "it fails")
        assert await ask(port, "/healthz") == (503, "clock: cannot reach nats at nowhere: start it\n")
        assert await ask(port, "/livez") == (200, "ok\n"), "a restart would not help"
        assert (await scrape(port))("tocsin_service_up", service="clock") == 0
    hanging = service()
    exposition = Exposition(settings, [hanging], [])
    async with running(hanging), served(exposition) as port:
        await eventually(lambda: healthy(exposition), "it is healthy")
        monkeypatch.setattr("tocsin.core.service._LONGEST_BEAT_S", 0.0)
        status, reason = await ask(port, "/healthz")
        assert status == 503
        assert re.fullmatch(r"clock: loop has not run for \d+ s\n", reason)
        assert await ask(port, "/livez") == (503, "a loop hangs: restart the process\n")


async def _has_failed(service: Service) -> bool:
    return service.restarts > 0


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /nowhere HTTP/1.1\r\n\r\n", 404, "not found: use /metrics, /healthz or /livez\n"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405, "only GET and HEAD are supported\n"),
        (b"rubbish\r\n\r\n", 400, "not an HTTP request: send GET /metrics\n"),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 400, "not an HTTP request: send GET /metrics\n"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 9000, 400, "not an HTTP request: send GET /metrics\n"),
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", 200, ""),
        (b"GET /healthz?x=1 HTTP/1.0\r\n\r\n", 200, "ok\n"),
    ],
)
async def test_a_request_is_answered_or_rejected(
    settings: Settings, request_: bytes, status: int, body: str
) -> None:
    async with served(Exposition(settings, [], [])) as port:
        assert await raw(port, request_) == (status, body)


async def test_one_client_too_many_replaces_the_oldest_that_sent_no_request(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MAX_CONNECTIONS", 2)
    monkeypatch.setattr(server, "_TIMEOUT_S", 1000.0)
    monkeypatch.setattr(server, "_REQUEST_TIMEOUT_S", 1000.0)
    async with served(Exposition(settings, [], [])) as port, asyncio.timeout(20):
        idle_clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        late = asyncio.open_connection("127.0.0.1", port)
        clients = [*idle_clients, await late]
        assert await clients[0][0].read() == b""
        clients[2][1].write(b"GET /nothing HTTP/1.1\r\n\r\n")
        assert (await clients[2][0].readline()).startswith(b"HTTP/1.1 404")
        for _, writer in clients:
            writer.close()


async def test_a_client_that_sends_nothing_is_dropped(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_TIMEOUT_S", 0.1)
    async with served(Exposition(settings, [], [])) as port, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()


async def test_a_client_that_does_not_read_its_answer_is_dropped(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a response that is too large for the buffers of the kernel."""
    group = Metrics()
    large = group.gauge("tocsin_large", "help", "label")
    for number in range(1000):
        large.set(1, f"{number}" + "x" * 20_000)
    monkeypatch.setattr(server, "_TIMEOUT_S", 0.5)
    serve, ended = server.MetricsServer.serve, []

    async def noted(
        self: server.MetricsServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await serve(self, reader, writer)
        ended.append(writer.transport.get_write_buffer_size())

    monkeypatch.setattr(server.MetricsServer, "serve", noted)
    async with served(Exposition(settings, [], [group])) as port, asyncio.timeout(20):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        await eventually(lambda: _any(ended), "it is dropped")
        assert ended == [0], "nothing is kept for it"
        writer.close()


async def _any(values: list[int]) -> bool:
    return bool(values)


async def test_an_address_in_use_is_rejected_with_the_setting(settings: Settings) -> None:
    async with served(Exposition(settings, [], [])) as port:
        with pytest.raises(Refused) as refused:
            async with serve_metrics(ListenAddress.parse(f"127.0.0.1:{port}"), Exposition(settings, [], [])):
                pass
    assert str(refused.value) == (
        f"TOCSIN_METRICS='127.0.0.1:{port}' cannot be listened on (address already in use): stop what uses it, or "
        "choose another address; two services on one host need a port each"
    )


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("application/openmetrics-text", True),
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", True),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", True),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.9", False),
        ("application/openmetrics-text;version=0.0.1", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=nan", False),
        ("text/plain", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_the_accept_header_chooses_the_format(accept: str, openmetrics: bool) -> None:
    assert wants_openmetrics(f"GET /metrics HTTP/1.1\r\nAccept: {accept}\r\n\r\n".encode()) is openmetrics


async def test_openmetrics_is_served_when_asked_for_and_equals_the_text_format(settings: Settings) -> None:
    group = Metrics()
    group.counter("tocsin_fires_total", 'help with "quotes"\n', "kind").add(5, 'a"b\\c\nd')
    group.histogram("tocsin_fire_delay_seconds", "help").observe_all((0.002, 3.0, 700.0))
    runs = service()
    exposition = Exposition(settings, [runs], [group])
    async with running(runs), served(exposition) as port:
        await eventually(lambda: healthy(exposition), "it is healthy")
        request = b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n"
        status, body = await raw(port, request)
        plain = await scrape(port)
    assert status == 200
    families = list(openmetrics_parser.text_string_to_metric_families(body))  # type: ignore[no-untyped-call]
    samples = {
        (each.name, tuple(sorted(each.labels.items()))) for family in families for each in family.samples
    }
    assert ("tocsin_fires_total", (("kind", 'a"b\\c\nd'),)) in samples
    assert ("tocsin_fire_delay_seconds_bucket", (("le", "1.0"),)) in samples
    assert {family.name for family in families} == set(plain.families)
