"""NATS: failures are fast and readable, and a connection survives restarts."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError

from tests.wait import eventually
from tocsin.core import bus as bus_module
from tocsin.core.bus import connect_bus, refuse_old_nats
from tocsin.core.errors import Refused, Unreachable
from tocsin.core.settings import Settings
from tocsin.embedded import embedded_nats


async def refusal(nats: str, within_s: float = 60.0) -> str:
    with pytest.raises(Unreachable) as refused:
        async with asyncio.timeout(within_s):
            await connect_bus(Settings(nats=nats), "test")
    message = str(refused.value)
    assert "\n" not in message
    return message


async def test_a_missing_nats_url_is_reported() -> None:
    assert "set TOCSIN_NATS, for example to nats://localhost:4222" in await refusal("")


@pytest.mark.parametrize(
    "url", ["nats://me:s3cret@127.0.0.1:1", "127.0.0.1:1", "nats://127.0.0.1:1, ,127.0.0.1:2"]
)
async def test_an_unreachable_server_is_reported_without_its_password(url: str) -> None:
    message = await refusal(url)
    assert message.startswith("cannot reach nats at ")
    assert "127.0.0.1:1" in message
    assert "set TOCSIN_NATS to a reachable server" in message
    assert "s3cret" not in message


@pytest.mark.parametrize("url", ["nats://", "nats://:4222", "nats://me:s3cret@:4222"])
async def test_a_url_without_a_host_is_rejected(url: str) -> None:
    message = await refusal(url)
    assert "has no host" in message
    assert "s3cret" not in message


@pytest.mark.parametrize(
    "url", ["nats://127.0.0.1:99999", "nats://127.0.0.1:port", "nats://" + "x" * 70 + ".y"]
)
async def test_an_invalid_url_is_rejected_with_the_reason(url: str) -> None:
    assert "cannot reach nats" in await refusal(url)


async def test_a_server_that_is_not_nats_is_rejected() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert "the server there is not nats" in await refusal(f"nats://127.0.0.1:{port}")


async def test_a_server_that_sends_nothing_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "_PROBE_S", 0.2)

    async def send_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(send_nothing, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert "TimeoutError" in await refusal(f"nats://127.0.0.1:{port}")


@asynccontextmanager
async def server_that_answers(*answers: bytes | None) -> AsyncIterator[str]:
    """A server that greets, gives the next answer to each CONNECT and closes; None is a reset."""
    left = list(answers)

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"version":"2.15.1","max_payload":1048576,"auth_required":true}\r\n')
        if await reader.readline():  # the probe sends nothing
            await reader.readline()
            answer = left.pop(0) if left else None
            if answer is None:
                at_once = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            else:
                writer.write(answer)
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        yield f"nats://me:s3cret@127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_rejected_credentials_are_reported_at_once_and_not_the_reset_that_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that rejects credentials closes the connection, often before its error is read."""
    monkeypatch.setattr(bus_module, "_CONNECT_S", 50.0)
    async with server_that_answers(None, b"-ERR 'Authorization Violation'\r\n") as url:
        message = await refusal(url, within_s=30.0)
    assert "rejects the user or the password (nats: 'Authorization Violation')" in message
    assert "s3cret" not in message


async def test_a_server_that_closes_the_connection_is_unreachable() -> None:
    async with server_that_answers(b"") as url:
        assert "unexpected EOF" in await refusal(url)


async def test_a_swallowed_cancellation_does_not_keep_the_first_connection_trying(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Python 3.11's `wait_for` does, if the answer comes together with the end of the time."""
    monkeypatch.setattr(bus_module, "_CONNECT_S", 0.2)
    process = Client._process_connect_init

    async def swallow(client: Client) -> None:
        try:
            await process(client)
        except asyncio.CancelledError:
            raise NatsError("the cancellation was swallowed") from None

    monkeypatch.setattr(Client, "_process_connect_init", swallow)

    async def greet_once(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not probed.is_set():
            writer.write(b"INFO {}\r\n")
        probed.set()

    probed = asyncio.Event()
    server = await asyncio.start_server(greet_once, "127.0.0.1", 0)
    async with server:
        await refusal(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", within_s=30.0)


async def test_the_second_server_of_a_list_is_used_if_the_first_is_unreachable(settings: Settings) -> None:
    bus = await connect_bus(
        settings.model_copy(update={"nats": f"nats://127.0.0.1:1,{settings.nats}"}), "test"
    )
    assert bus.is_connected
    await bus.close()


@pytest.mark.parametrize(("minimum", "refused"), [((99, 0), True), ((2, 99), True), ((2, 11), False)])
async def test_a_server_that_is_too_old_is_rejected_with_its_version(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, minimum: tuple[int, int], refused: bool
) -> None:
    monkeypatch.setattr(bus_module, "MINIMUM_VERSION", minimum)
    if refused:
        asked = f"tocsin needs {minimum[0]}.{minimum[1]} or newer"
        with pytest.raises(Refused, match=rf"^nats 2\.\d+\.\d+ is too old: {asked}$"):
            await connect_bus(settings, "test")
    else:
        await (await connect_bus(settings, "test")).close()


async def test_the_connection_to_a_rejected_server_is_closed(settings: Settings) -> None:
    bus = await connect_bus(settings, "test")
    version = bus.connected_server_version
    await refuse_old_nats(bus, (version.major, version.minor))
    assert bus.is_connected
    with pytest.raises(Refused):
        await refuse_old_nats(bus, (version.major, version.minor + 1))
    assert bus.is_closed


async def test_a_connection_outlives_a_restart_of_nats(tmp_path: Path) -> None:
    with embedded_nats(tmp_path) as server:
        bus = await connect_bus(Settings(nats=server.url), "test")

    async def gone() -> bool:
        return not bus.is_connected

    async def back() -> bool:
        return bus.is_connected

    await eventually(gone, "the connection is gone")
    with embedded_nats(tmp_path):
        await eventually(back, "the connection is back", within=60)
        await bus.close()
