"""F24: no client keeps another from the metrics, and errors are shown to those who may see them."""

from __future__ import annotations

import asyncio

import pytest

from tests.metrics.scrapes import raw, served
from tocsin.core.listen_address import ListenAddress
from tocsin.core.metrics import Metrics
from tocsin.core.settings import Settings
from tocsin.metrics import server
from tocsin.metrics.exposition import Exposition
from tocsin.metrics.server import serve_metrics


async def test_idle_connections_cannot_keep_a_scrape_out(settings: Settings) -> None:
    """F24: 32 connections without a request closed Prometheus and probes out for ten seconds."""
    exposition = Exposition(settings, [], [])
    async with served(exposition) as port:
        idle_clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
        async with asyncio.timeout(5):
            status = await _first_line(port)
        for _, writer in idle_clients:
            writer.close()
    assert status.startswith(b"HTTP/1.1 ")


async def _first_line(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
    try:
        return await reader.readline()
    finally:
        writer.close()


async def test_clients_that_do_not_read_cannot_keep_a_scrape_out(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F24: a client that sends a request and reads no answer has its place for ten seconds."""
    monkeypatch.setattr(server, "_TIMEOUT_S", 1000.0)
    monkeypatch.setattr(server, "_MAX_CONNECTIONS", 4)
    group = Metrics()
    large = group.gauge("tocsin_large", "help", "label")
    for number in range(1000):
        large.set(1, f"{number}" + "x" * 20_000)
    async with served(Exposition(settings, [], [group])) as port, asyncio.timeout(20):
        clients = []
        for _ in range(6):
            clients.append(await asyncio.open_connection("127.0.0.1", port, limit=1))
            clients[-1][1].write(b"GET /metrics HTTP/1.1\r\n\r\n")
            await clients[-1][0].readexactly(1)
        status = await _first_line(port)
        for _, writer in clients:
            writer.transport.abort()
    assert status.startswith(b"HTTP/1.1 200")


async def test_with_a_token_the_metrics_are_for_those_who_have_it(settings: Settings) -> None:
    away = settings.model_copy(update={"postgres": "postgresql://user@127.0.0.1:1/none"})
    probe = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = int(probe.sockets[0].getsockname()[1])
    probe.close()
    address = ListenAddress.parse(f"127.0.0.1:{port}")
    async with serve_metrics(address, Exposition(away, [], []), "letmein"):
        for given in (b"", b"Authorization: Bearer wrong\r\n", b"Authorization: letmein\r\n"):
            status, body = await raw(port, b"GET /metrics HTTP/1.1\r\n" + given + b"\r\n")
            assert (status, "tocsin_" in body) == (401, False)
            status, body = await raw(port, b"GET /healthz HTTP/1.1\r\n" + given + b"\r\n")
            assert (status, "127.0.0.1" in body) == (503, False), "no text of an error for strangers"
        token = b"authorization:  bearer letmein\r\n\r\n"
        status, body = await raw(port, b"GET /metrics HTTP/1.1\r\n" + token)
        assert (status, "tocsin_database_up 0" in body) == (200, True)
        status, body = await raw(port, b"GET /healthz HTTP/1.1\r\n" + token)
        assert (status, body.startswith("cannot reach postgres at 127.0.0.1:1")) == (503, True)


@pytest.mark.parametrize(
    ("address", "is_shown"), [("127.0.0.1", True), ("::1", True), ("192.0.2.7", False), ("", False)]
)
async def test_the_reason_in_healthz_is_for_clients_on_this_host(
    settings: Settings, address: str, is_shown: bool
) -> None:
    away = settings.model_copy(update={"postgres": "postgresql://user@127.0.0.1:1/none"})
    exposition = Exposition(away, [], [])
    request = server.Request("GET", "/healthz", {})
    response = await server.MetricsServer(exposition)._respond(request, address)
    await exposition.close()
    assert response.status == 503
    assert ("cannot reach postgres" in response.body) is is_shown
