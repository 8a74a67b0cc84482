"""The page over HTTP: two answers, and nothing that a client does or leaves undone matters to anybody else."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import psycopg
import pytest

from tests.metrics.scraping import Figures, ask, raw, scrape
from tests.sql import one_row
from tests.waiting import eventually
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
from tocsin.metrics.exposition import Page
from tocsin.metrics.server import serving


@asynccontextmanager
async def served(page: Page) -> AsyncIterator[int]:
    """On a free port."""
    probe = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = int(probe.sockets[0].getsockname()[1])
    probe.close()
    async with serving(ListenAddress.parse(f"127.0.0.1:{port}"), page):
        yield port


async def idle() -> None:
    while True:
        beat("loop")
        await asyncio.Event().wait()


def service(run: Callable[[], Awaitable[None]] = idle) -> Service:
    return Service("clock", run)


@pytest.fixture(autouse=True)
def patient_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a test does not say that Postgres hangs, it does not: not even on a machine that stalls."""
    monkeypatch.setattr("tocsin.metrics.exposition._PATIENCE_S", 60.0)


async def well(page: Page) -> bool:
    return await page.problem() is None


async def ill(page: Page) -> bool:
    return not await well(page)


async def test_a_page_has_the_process_its_groups_and_the_house(settings: Settings) -> None:
    group = Metrics()
    group.counter("tocsin_fires_total", "help").add(5)
    runs = service()
    page = Page(settings, [runs], [group])
    async with running(runs), served(page) as port:
        await eventually(lambda: well(page), "it is well")
        found = await scrape(port)
        assert found("tocsin_fires_total") == 5
        assert found("tocsin_database_up") == 1
        assert found("tocsin_service_up", service="clock") == 1
        assert found("tocsin_service_restarts_total", service="clock") == 0
        assert found("tocsin_log_head_seq") == 0
        assert await ask(port, "/healthz") == (200, "ok\n")


async def test_while_postgres_is_away_the_process_speaks_of_itself(settings: Settings) -> None:
    away = settings.model_copy(update={"postgres": "postgresql://nobody@127.0.0.1:1/none"})
    group = Metrics()
    group.counter("tocsin_fires_total", "help").add(5)
    runs = service()
    async with running(runs), served(Page(away, [runs], [group])) as port:
        found = await scrape(port)
        assert (found("tocsin_fires_total"), found("tocsin_database_up")) == (5, 0)
        assert found.get("tocsin_log_head_seq") is None
        status, reason = await ask(port, "/healthz")
        assert status == 503
        assert reason.startswith("cannot reach postgres at 127.0.0.1:1/none")
        assert reason.count("\n") == 1


async def test_a_postgres_that_hangs_costs_one_session_and_no_answer(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.metrics.exposition._PATIENCE_S", 0.05)
    connected: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: connected.append(writer), "127.0.0.1", 0)
    port_of_postgres = silent.sockets[0].getsockname()[1]
    hangs = settings.model_copy(update={"postgres": f"postgresql://x@127.0.0.1:{port_of_postgres}/x"})
    page = Page(hangs, [], [])

    async def is_asked() -> bool:
        assert Figures(await page.metrics())("tocsin_database_up") == 0
        return bool(connected)

    await eventually(is_asked, "postgres is connected to")
    for _ in range(3):
        assert await is_asked()
    assert "has not answered" in str(await page.problem())
    assert len(connected) == 1
    await page.close()
    silent.close()
    for writer in connected:
        writer.close()


async def test_figures_are_not_shown_any_more_when_postgres_stops_to_answer(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.metrics.exposition._FRESH_S", 0.0)
    monkeypatch.setattr("tocsin.metrics.exposition._DUTY", 0.0)
    page = Page(settings, [], [])
    assert Figures(await page.metrics())("tocsin_database_up") == 1
    monkeypatch.setattr("tocsin.metrics.exposition._PATIENCE_S", 0.05)
    monkeypatch.setattr("tocsin.metrics.exposition.read_house", lambda _: asyncio.Event().wait())
    found = Figures(await page.metrics())
    assert (found("tocsin_database_up"), found.get("tocsin_log_head_seq")) == (0, None)
    assert await page.problem() == "postgres has not answered for 0.05 s"
    await page.close()


async def test_after_postgres_was_frozen_its_figures_are_soon_read_again(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.metrics.exposition._FRESH_S", 0.1)
    monkeypatch.setattr("tocsin.metrics.exposition._PATIENCE_S", 0.1)
    monkeypatch.setattr("tocsin.metrics.exposition._LONGEST_REST_S", 0.1)
    monkeypatch.setattr("tocsin.metrics.exposition._DUTY", 1e6)
    page = Page(settings, [], [])
    await eventually(lambda: well(page), "it has read the house")
    session = "select pid from pg_stat_activity where application_name = 'tocsin metrics'"
    session += " and datname = current_database()"
    pid = (await one_row(connection, session))["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        await eventually(lambda: ill(page), "it is noticed")
    finally:
        os.kill(pid, signal.SIGCONT)
    await append_events(connection, [NewEvent(await database_now(connection), "derived", "noted", {})])

    async def shown() -> bool:
        return Figures(await page.metrics()).get("tocsin_log_head_seq") == 1

    await eventually(shown, "what was written since is shown")
    await page.close()


@pytest.mark.parametrize("error", [ZeroDivisionError("a defect"), psycopg.OperationalError("one\ntwo")])
async def test_whatever_goes_wrong_with_the_house_the_page_answers_without_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(_: object) -> Metrics:
        raise error

    monkeypatch.setattr("tocsin.metrics.exposition.read_house", fail)
    page = Page(settings, [], [])
    assert Figures(await page.metrics())("tocsin_database_up") == 0
    assert await page.problem() == str(error).partition("\n")[0]
    await page.close()


async def test_the_house_is_read_once_for_all_who_ask_within_a_second(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = 0

    async def read(_: object) -> Metrics:
        nonlocal readings
        readings += 1
        return Metrics()

    monkeypatch.setattr("tocsin.metrics.exposition.read_house", read)
    monkeypatch.setattr("tocsin.metrics.exposition._FRESH_S", 60.0)
    page = Page(settings, [], [])
    await asyncio.gather(*(page.metrics() for _ in range(20)))
    await page.metrics()
    assert readings == 1
    monkeypatch.setattr("tocsin.metrics.exposition._FRESH_S", 0.0)
    monkeypatch.setattr("tocsin.metrics.exposition._DUTY", 0.0)
    page._fresh_until_s = 0.0
    await page.metrics()
    await page.metrics()
    assert readings == 3
    await page.close()


async def test_a_service_that_fails_or_hangs_is_not_well(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise Unreachable("cannot reach nats at nowhere: start it")

    failing = service(fail)
    page = Page(settings, [failing], [])
    async with running(failing), served(page) as port:
        await eventually(lambda: _has_failed(failing), "it fails")
        assert await ask(port, "/healthz") == (503, "clock: cannot reach nats at nowhere: start it\n")
        assert (await scrape(port))("tocsin_service_up", service="clock") == 0
    hanging = service()
    page = Page(settings, [hanging], [])
    async with running(hanging), served(page) as port:
        await eventually(lambda: well(page), "it is well")
        monkeypatch.setattr("tocsin.core.service._SILENT_S", 0.0)
        status, reason = await ask(port, "/healthz")
        assert status == 503
        assert re.fullmatch(r"clock: loop has been silent for \d+ s\n", reason)


async def _has_failed(one: Service) -> bool:
    return one.restarts > 0


@pytest.mark.parametrize(
    ("request_", "status", "said"),
    [
        (b"GET /nowhere HTTP/1.1\r\n\r\n", 404, "there are /metrics and /healthz\n"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405, "only GET is answered here\n"),
        (b"rubbish\r\n\r\n", 400, "this is no request: ask GET /metrics\n"),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 400, "this is no request: ask GET /metrics\n"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 9000, 400, "this is no request: ask GET /metrics\n"),
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", 200, ""),
        (b"GET /healthz?x=1 HTTP/1.0\r\n\r\n", 200, "ok\n"),
    ],
)
async def test_what_is_asked_is_answered_or_refused(
    settings: Settings, request_: bytes, status: int, said: str
) -> None:
    async with served(Page(settings, [], [])) as port:
        assert await raw(port, request_) == (status, said)


async def test_one_client_too_many_is_closed_at_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_AT_ONCE", 2)
    monkeypatch.setattr(server, "_WITHIN_S", 1000.0)
    async with served(Page(settings, [], [])) as port, asyncio.timeout(20):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        for one in (writer, *(writer for _, writer in silent)):
            one.close()


async def test_a_client_that_says_nothing_is_dropped(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_WITHIN_S", 0.1)
    async with served(Page(settings, [], [])) as port, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()


async def test_a_client_that_does_not_read_its_answer_is_dropped(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an answer that is too large for the buffers of the kernel."""
    group = Metrics()
    large = group.gauge("tocsin_large", "help", "label")
    for number in range(1000):
        large.set(1, f"{number}" + "x" * 20_000)
    monkeypatch.setattr(server, "_WITHIN_S", 0.5)
    serve, ended = server.Server.serve, []

    async def noted(self: server.Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(self, reader, writer)
        ended.append(writer.transport.get_write_buffer_size())

    monkeypatch.setattr(server.Server, "serve", noted)
    async with served(Page(settings, [], [group])) as port, asyncio.timeout(20):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        await eventually(lambda: _any(ended), "it is dropped")
        assert ended == [0], "nothing is kept for it"
        writer.close()


async def _any(found: list[int]) -> bool:
    return bool(found)


async def test_an_address_that_is_taken_is_said_with_the_setting(settings: Settings) -> None:
    async with served(Page(settings, [], [])) as port:
        with pytest.raises(Refused) as refused:
            async with serving(ListenAddress.parse(f"127.0.0.1:{port}"), Page(settings, [], [])):
                pass
    assert str(refused.value) == (
        f"TOCSIN_METRICS='127.0.0.1:{port}' cannot be listened on (address already in use): stop what uses it, or "
        "choose another address; two services on one host need a port each"
    )
