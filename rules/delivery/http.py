"""One HTTP request, through the guard.

Guarantee: it connects to a checked address only, verifies the certificate against the host of the url, follows
no redirect, uses no proxy and keeps no cookies; it ends within its timeout, sends at most a megabyte
and reads at most 64 kB. No message shows more of a url than its host and port.

Why aiohttp: its connector takes a resolver and a factory of sockets, so that the address is pinned below TLS
and the certificate is still checked against the name, by public interfaces alone. httpx offers that only
behind a private attribute of its transport.

On failure: `Unreachable` when no answer came (to be tried again), `InvalidInput` when none can.
"""

import asyncio
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from rules.delivery.egress import Egress, connection_problem, place
from schemas.values.http_headers import check_header_value
from schemas.values.web_address import check_url
from tocsin.core.errors import InvalidInput, Unreachable

MAX_REQUEST_BYTES = 1_000_000
MAX_RESPONSE_BYTES = 65_536
_EXCERPT = 300
_EXCERPT_S = 2.0
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    timeout_s: float = 10.0
    reads: Literal["failures", "all"] = "failures"
    """Of whose answers the body is read: of a delivery only an error says anything."""


@dataclass(frozen=True)
class Response:
    where: str
    """Host and port."""
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def excerpt(self) -> str:
        """The beginning of the body on one line, whatever bytes it has."""
        text = _UNPRINTABLE.sub(" ", self.body[: _EXCERPT * 4].decode("utf-8", "replace")).strip()
        return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}..."


async def request(egress: Egress, one: Request) -> Response:
    url = URL(check_url(one.url))
    where = place(str(url.host), url.port or 0)
    if one.body is not None and len(one.body) > MAX_REQUEST_BYTES:
        raise InvalidInput(
            f"the request to {where} has {len(one.body)} bytes, at most {MAX_REQUEST_BYTES} are sent",
            remedy="send less",
        )
    headers = {name: check_header_value(name, value) for name, value in one.headers.items()}
    try:
        async with asyncio.timeout(one.timeout_s):
            return await _exchange(egress, one, url, where, headers)
    except TimeoutError:
        raise Unreachable(f"{where} did not answer within {one.timeout_s:g} s") from None
    except aiohttp.InvalidURL:
        raise InvalidInput(f"the url of {where} cannot be used", remedy="write https://host/path") from None
    except aiohttp.ClientConnectorCertificateError as error:
        raise Unreachable(f"{where} cannot be reached: {_tls_problem(error)}") from None
    except aiohttp.ClientOSError as error:
        raise Unreachable(f"{where} cannot be reached: {connection_problem(_cause(error))}") from None
    except aiohttp.ServerDisconnectedError:
        raise Unreachable(f"{where} closed the connection without an answer") from None
    except aiohttp.ClientError as error:
        raise Unreachable(f"{where} gave an answer that is not http ({type(error).__name__})") from None


async def _exchange(
    egress: Egress, one: Request, url: URL, where: str, headers: Mapping[str, str]
) -> Response:
    assert url.raw_host is not None
    assert url.port is not None
    addresses = await egress.addresses(url.raw_host, url.port)
    connector = aiohttp.TCPConnector(
        resolver=_Pinned(addresses),
        socket_factory=_only_to(addresses),
        ssl=egress.tls,
        use_dns_cache=False,
        force_close=True,
    )
    async with (
        aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            headers={"User-Agent": "tocsin", "Accept": "*/*"},
            skip_auto_headers=("Accept-Encoding",),
        ) as session,
        session.request(one.method, url, headers=headers, data=one.body, allow_redirects=False) as answer,
    ):
        body = await _read(answer, one.reads)
        return Response(where, answer.status, answer.headers, body)


async def _read(answer: aiohttp.ClientResponse, reads: Literal["failures", "all"]) -> bytes:
    if reads == "all":
        return await _first_bytes(answer, MAX_RESPONSE_BYTES)
    if answer.ok and not 300 <= answer.status < 400:
        return b""
    # The status is known, so a body that stalls or breaks changes nothing.
    try:
        async with asyncio.timeout(_EXCERPT_S):
            return await _first_bytes(answer, _EXCERPT * 4)
    except (TimeoutError, aiohttp.ClientError, OSError):
        return b""


async def _first_bytes(answer: aiohttp.ClientResponse, most: int) -> bytes:
    pieces = bytearray()
    while piece := await answer.content.read(most - len(pieces)):
        pieces += piece
    return bytes(pieces)


class _Pinned(AbstractResolver):
    """Answers with what was resolved and checked before."""

    def __init__(self, addresses: list[str]) -> None:
        self._addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        return


def _only_to(addresses: list[str]) -> Any:
    """The last gate, and the only one for addresses written in the url, which no resolver sees."""

    def make(info: tuple[Any, ...]) -> socket.socket:
        family, kind, proto, _, address = info
        if address[0] not in addresses:
            raise ConnectionRefusedError(f"{address[0]} was not checked")
        return socket.socket(family, kind, proto)

    return make


def _tls_problem(error: aiohttp.ClientConnectorCertificateError) -> str:
    inner = error.certificate_error
    return connection_problem(inner) if isinstance(inner, OSError) else "its certificate is not accepted"


def _cause(error: aiohttp.ClientOSError) -> OSError:
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return inner if isinstance(inner, OSError) else error
