"""Sends one HTTP request.

Guarantee: it connects only to an address that the egress guard accepted, verifies the certificate
against the host of the url, follows no redirect, uses no proxy and stores no cookies. It ends
within its timeout, sends at most a megabyte and reads at most 64 kB. Messages show only the host
and port of a url.

Why aiohttp: its connector takes a resolver and a factory of sockets. So the address is pinned below
TLS and the certificate is still checked against the name, by public interfaces. httpx offers that
only behind a private attribute of its transport.

On failure: `Unreachable` if no answer came, which can be retried; `InvalidInput` if the request
cannot be sent.
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

from rules.delivery.egress import Egress, connection_problem, host_and_port
from schemas.values.http_headers import check_header_value
from schemas.values.web_address import check_url
from tocsin.core.errors import InvalidInput, Unreachable

MAX_REQUEST_BYTES = 1_000_000
MAX_RESPONSE_BYTES = 65_536
_MAX_EXCERPT_LENGTH = 300
_EXCERPT_TIMEOUT_S = 2.0
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


@dataclass(frozen=True)
class HttpRequest:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    timeout_s: float = 10.0
    reads: Literal["failures", "all"] = "failures"
    """Answers whose body is read. The body of a successful delivery has no information."""


@dataclass(frozen=True)
class HttpResponse:
    where: str
    """Host and port."""
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def excerpt(self) -> str:
        """The beginning of the body on one line, without unprintable characters."""
        text = _UNPRINTABLE.sub(" ", self.body[: _MAX_EXCERPT_LENGTH * 4].decode("utf-8", "replace")).strip()
        return text if len(text) <= _MAX_EXCERPT_LENGTH else f"{text[:_MAX_EXCERPT_LENGTH]}..."


async def request(egress: Egress, sent: HttpRequest) -> HttpResponse:
    url = URL(check_url(sent.url))
    where = host_and_port(str(url.host), url.port or 0)
    if sent.body is not None and len(sent.body) > MAX_REQUEST_BYTES:
        raise InvalidInput(
            f"the request to {where} has {len(sent.body)} bytes, at most {MAX_REQUEST_BYTES} are sent",
            remedy="send less",
        )
    headers = {name: check_header_value(name, value) for name, value in sent.headers.items()}
    try:
        async with asyncio.timeout(sent.timeout_s):
            return await _exchange(egress, sent, url, where, headers)
    except TimeoutError:
        raise Unreachable(f"{where} did not answer within {sent.timeout_s:g} s") from None
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
    egress: Egress, sent: HttpRequest, url: URL, where: str, headers: Mapping[str, str]
) -> HttpResponse:
    assert url.raw_host is not None
    assert url.port is not None
    addresses = await egress.addresses(url.raw_host, url.port)
    connector = aiohttp.TCPConnector(
        resolver=_PinnedResolver(addresses),
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
        session.request(sent.method, url, headers=headers, data=sent.body, allow_redirects=False) as answer,
    ):
        body = await _read(answer, sent.reads)
        return HttpResponse(where, answer.status, answer.headers, body)


async def _read(answer: aiohttp.ClientResponse, reads: Literal["failures", "all"]) -> bytes:
    if reads == "all":
        return await _first_bytes(answer, MAX_RESPONSE_BYTES)
    if answer.ok and not 300 <= answer.status < 400:
        return b""
    # The status is known: a body that stalls or breaks is not needed.
    try:
        async with asyncio.timeout(_EXCERPT_TIMEOUT_S):
            return await _first_bytes(answer, _MAX_EXCERPT_LENGTH * 4)
    except (TimeoutError, aiohttp.ClientError, OSError):
        return b""


async def _first_bytes(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    pieces = bytearray()
    while piece := await answer.content.read(limit - len(pieces)):
        pieces += piece
    return bytes(pieces)


class _PinnedResolver(AbstractResolver):
    """Resolves every name to the addresses that were checked before."""

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
    """A factory of sockets that rejects other addresses. It is the only check of an address that
    the url names directly, because no resolver is asked for it."""

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
