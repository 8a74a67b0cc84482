"""A running API on loopback for tests, and clients of it with tokens of their own.

async def test_x(api: RunningApi) -> None:
    ann = await api.client("viewer:plant-*")
    answer = await ann.get("/v1/me")
    assert answer.status == 200 and answer.json["name"]
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp

from tests.wait import eventually
from tocsin.api.access.grant_text import parse_grant
from tocsin.api.access.tokens import TokenChange, add_token
from tocsin.api.route_group import RouteGroup
from tocsin.api.routes import GROUPS
from tocsin.api.service import Api, listen
from tocsin.core.db import open_session
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


class HttpAnswer:
    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> dict[str, Any]:
        """The problem document, checked."""
        assert self.headers["content-type"] == "application/problem+json", self.text
        problem: dict[str, Any] = self.json
        assert problem["status"] == self.status
        return problem

    def __repr__(self) -> str:
        return f"{self.status} {self.text[:500]}"


class HttpClient:
    """Requests of one caller; without a token, of a stranger."""

    def __init__(self, http: aiohttp.ClientSession, url: str, token: str | None, name: str) -> None:
        self.http = http
        self.url = url
        self.token = token
        self.name = name
        """The principal of the token: the `who` of its changes."""

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    async def request(self, method: str, path: str, **options: Any) -> HttpAnswer:
        headers = {**self.headers, **options.pop("headers", {})}
        async with self.http.request(
            method, self.url + path, headers=headers, allow_redirects=False, **options
        ) as response:
            return HttpAnswer(response.status, response.headers, await response.read())

    async def get(self, path: str, **options: Any) -> HttpAnswer:
        return await self.request("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> HttpAnswer:
        if body is not None:
            options["json"] = body
        return await self.request("POST", path, **options)

    async def put(self, path: str, body: Any, **options: Any) -> HttpAnswer:
        return await self.request("PUT", path, json=body, **options)

    async def patch(self, path: str, body: Any, **options: Any) -> HttpAnswer:
        return await self.request("PATCH", path, json=body, **options)

    async def delete(self, path: str, **options: Any) -> HttpAnswer:
        return await self.request("DELETE", path, **options)

    async def pages(self, path: str) -> list[Any]:
        """All items of a list, over all of its pages."""
        items: list[Any] = []
        cursor = None
        while True:
            separator = "&" if "?" in path else "?"
            answer = await self.get(path if cursor is None else f"{path}{separator}cursor={cursor}")
            assert answer.status == 200, answer
            items += answer.json["items"]
            cursor = answer.json["next_cursor"]
            if cursor is None:
                return items


class RunningApi:
    def __init__(self, settings: Settings, url: str, service: Service, stack: AsyncExitStack) -> None:
        self.settings = settings
        self.url = url
        self.service = service
        self._stack = stack
        self._numbers = itertools.count(1)

    async def mint(self, *grants: str, name: str | None = None) -> tuple[str, str]:
        """The name and the text of a new token."""
        name = name or f"caller-{next(self._numbers)}"
        async with open_session(self.settings, "test") as connection:
            added = await add_token(
                connection, name, [parse_grant(grant) for grant in grants], TokenChange("test", "test")
            )
        return name, added.text

    async def client(self, *grants: str, name: str | None = None) -> HttpClient:
        """A client with a new token, such as `client("viewer:plant-*")`."""
        name, token = await self.mint(*grants, name=name)
        return await self.with_token(token, name)

    async def with_token(self, token: str | None, name: str = "stranger") -> HttpClient:
        jar = aiohttp.DummyCookieJar()
        http = await self._stack.enter_async_context(
            aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(60))
        )
        return HttpClient(http, self.url, token, name)


@asynccontextmanager
async def running_api(
    settings: Settings, groups: Sequence[RouteGroup] = GROUPS, *, must_be_ready: bool = True
) -> AsyncIterator[RunningApi]:
    """The API as a service on a free port, for the length of the block."""
    settings = settings.model_copy(update={"api": "127.0.0.1:0"})
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(listen(settings))
        api = Api(settings, listening, groups)
        service = Service("api", api.run)
        await stack.enter_async_context(running(service))
        started = RunningApi(settings, api.url, service, stack)
        stranger = await started.with_token(None)

        async def is_ready() -> bool:
            return (await stranger.get("/readyz")).status == 200 or not must_be_ready

        await eventually(is_ready, "the api is ready")
        yield started


__all__ = ["HttpAnswer", "HttpClient", "RunningApi", "running_api"]
