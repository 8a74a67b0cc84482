"""Clients of the live doors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.api.running_api import HttpClient


@dataclass(frozen=True)
class SseMessage:
    id: int | None
    event: str
    data: Any


class SseListener:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self, *, with_heartbeats: bool = False) -> SseMessage | None:
        """The next message; None at the end of the feed."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(60):
            async for line in self.response.content:
                text = line.decode().rstrip("\n")
                if text:
                    name, _, value = text.partition(": ")
                    fields[name] = value
                elif "data" in fields or (with_heartbeats and fields):
                    id = int(fields["id"]) if "id" in fields else None
                    data = json.loads(fields["data"]) if "data" in fields else None
                    return SseMessage(id, fields.get("event", "message"), data)
                else:
                    fields = {}
        return None

    async def seqs(self, count: int) -> list[int | None]:
        messages = [await self.next() for _ in range(count)]
        return [message.id if message is not None else None for message in messages]


@asynccontextmanager
async def listening(client: HttpClient, parameters: str = "", **headers: str) -> AsyncIterator[SseListener]:
    async with client.http.get(
        f"{client.url}/v1/live{parameters}", headers={**client.headers, **headers}
    ) as response:
        assert response.status == 200, await response.text()
        listener = SseListener(response)
        await listener.next(with_heartbeats=True)
        yield listener


class SocketClient:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self._id = 0
        self.records: list[dict[str, Any]] = []

    async def call(self, name: str, **arguments: Any) -> Any:
        """The result of a call; records that arrive before it are kept."""
        self._id += 1
        await self.socket.send_json({"id": self._id, "call": name, "args": arguments})
        while True:
            message = await self.receive()
            if "id" in message:
                assert "problem" not in message, message["problem"]
                return message["result"]
            self.records.append(message)

    async def problem(self, message: str | dict[str, Any]) -> Any:
        await self.socket.send_str(message if isinstance(message, str) else json.dumps(message))
        return (await self.receive())["problem"]

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(60):
            message: dict[str, Any] = await self.socket.receive_json()
        return message


@asynccontextmanager
async def connected(client: HttpClient) -> AsyncIterator[SocketClient]:
    async with client.http.ws_connect(f"{client.url}/v1/ws", headers=client.headers) as socket:
        yield SocketClient(socket)
