"""Requests of commands to the API.

Guarantees: a problem document becomes the error with its message, its remedy and the exit code that the same
error has with the database. A write that got no answer is sent again with the same Idempotency-Key, so it has
its effect once. Redirects are not followed: they could carry the token elsewhere.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import aiohttp

from tocsin.cli.remote.address import api_token
from tocsin.core.errors import (
    Forbidden,
    InvalidInput,
    NotFound,
    Refused,
    TocsinError,
    Unauthenticated,
    Unreachable,
)
from tocsin.core.instant import parse_instant

Row = dict[str, Any]
_ERRORS: dict[int, type[TocsinError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    422: InvalidInput,
}
_PAGE = 500
_WITHIN_S = 60.0
_ATTEMPTS = 3
_INSTANTS = ("since", "ts", "deadline", "at", "now")
_LARGEST_BYTES = 64 * 1024 * 1024


class ApiClient:
    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self._url = url
        self._http = http

    async def get(self, path: str, **query: Any) -> Any:
        return await self._request("GET", path, query=query)

    async def items(self, path: str, limit: int, **query: Any) -> list[Row]:
        """The first items of a list, over as many pages as they need, with their instants."""
        found: list[Row] = []
        cursor = None
        while len(found) < limit:
            page = await self.get(path, limit=min(_PAGE, limit - len(found)), cursor=cursor, **query)
            found += [with_instants(item) for item in page["items"]]
            cursor = page.get("next_cursor")
            if cursor is None:
                break
        return found[:limit]

    async def write(
        self,
        path: str,
        body: Any = None,
        *,
        method: str = "POST",
        if_match: str | None = None,
        has_key: bool = True,
    ) -> Any:
        """A change. `has_key` is false where the API takes no Idempotency-Key."""
        headers = {"Idempotency-Key": str(uuid.uuid4())} if has_key else {}
        if if_match is not None:
            headers["If-Match"] = if_match
        return await self._request(method, path, body=body, headers=headers, repeats=has_key)

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Row | None = None,
        body: Any = None,
        headers: dict[str, str] | None = None,
        repeats: bool = True,
    ) -> Any:
        sent = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                async with self._http.request(
                    method, self._url + path, params=sent, json=body, headers=headers, allow_redirects=False
                ) as response:
                    return await _answer(response)
            except (aiohttp.ClientError, TimeoutError) as error:
                if attempt == _ATTEMPTS or not repeats:
                    reason = str(error) or type(error).__name__
                    raise Unreachable(
                        f"the API at {self._url} did not answer ({reason})", remedy="check TOCSIN_URL"
                    ) from None
                await asyncio.sleep(0.2 * attempt)
        raise AssertionError


@asynccontextmanager
async def open_api(url: str) -> AsyncIterator[ApiClient]:
    headers = {"Authorization": f"Bearer {api_token()}"}
    timeout = aiohttp.ClientTimeout(total=_WITHIN_S, connect=10)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout, trust_env=False) as http:
        yield ApiClient(url, http)


def with_instants(item: Row) -> Row:
    """The fields of an answer whose names are those of instants, as instants."""
    return {name: _instant(name, value) for name, value in item.items()}


def _instant(name: str, value: Any) -> Any:
    is_named = name in _INSTANTS or name.endswith(("_at", "_until", "_since"))
    return parse_instant(value) if is_named and isinstance(value, str) else value


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _answer(response: aiohttp.ClientResponse) -> Any:
    content = await response.content.read(_LARGEST_BYTES)
    while more := await response.content.read(_LARGEST_BYTES - len(content)):
        content += more
    import json

    try:
        answer = json.loads(content) if content else None
    except ValueError:
        answer = None
    if 200 <= response.status < 300:
        return answer
    if not isinstance(answer, dict) or "detail" not in answer:
        raise Unreachable(
            f"{response.url.origin()} answered {response.status}, which is not an answer of Tocsin",
            remedy="check TOCSIN_URL",
        )
    error = Unreachable if response.status >= 500 else _ERRORS.get(response.status, Refused)
    raise error(str(answer["detail"]), remedy=str(answer.get("remedy") or ""))
