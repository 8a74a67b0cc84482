"""NATS connections: they start fast, fail with a clear error, and then reconnect forever.

The first attempt is our own TCP probe, because nats-py answers a rejected first attempt with a
sleep of two seconds, sixty times. Once connected, the client reconnects without limit: an outage of
NATS is ordinary, and every caller has its own time limit. A cancellation that arrives together with
an answer ends the call (see `tocsin.core.cancellation`).

On failure: `Unreachable` names the address and the variable that sets it, at once if the server
rejects the credentials. `Refused` names a server that is too old.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import structlog
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import UnexpectedEOF

from tocsin.core.cancellation import cancellable
from tocsin.core.errors import Refused, Unreachable, WrongAddress
from tocsin.core.nats_client import ClearTextRefused, TocsinNatsClient
from tocsin.core.nats_transport import clear_text_rule, credentials, tls_context
from tocsin.core.settings import Settings

_log = structlog.get_logger()
# The first version with a time to live per message, which the leases need.
MINIMUM_VERSION = (2, 11)
_PROBE_S = 2.0
_CONNECT_S = 5.0


async def connect_bus(
    settings: Settings, name: str, on_error: Callable[[Exception], None] | None = None
) -> Client:
    """Connect.

    Errors of the connection, such as a missing permission, go to `on_error` or to the log.
    """
    if not settings.nats:
        raise WrongAddress(
            "TOCSIN_NATS is not set",
            remedy="set TOCSIN_NATS, for example to nats://localhost:4222, "
            "or run `tocsin up`, which starts its own server",
        )
    urls = nats_urls(settings)
    authentication, tls = credentials(settings, urls), tls_context(settings)
    client = TocsinNatsClient(settings.nats_api, clear_text_rule(settings, urls))
    client.authenticate_with_key(authentication.pop("public_nkey", None))
    await _probe(urls)
    first = _FirstConnection(urls, on_error or _log_error, client)

    async def disconnect(_: None) -> None:
        await client.close()

    connecting = client.connect(
        servers=urls,
        name=f"tocsin {name}",
        allow_reconnect=True,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.1,  # type: ignore[arg-type] # passed to `asyncio.sleep`
        connect_timeout=2,
        ping_interval=5,
        max_outstanding_pings=2,
        pending_size=16 * 1024 * 1024,
        inbox_prefix=settings.nats_inbox,
        error_cb=first.note_error,
        tls=tls,
        **authentication,
    )
    try:
        async with asyncio.timeout(_CONNECT_S):
            await cancellable(connecting, undo=disconnect)
            if not client.is_connected:  # nats-py takes a connection that the server closed for success
                await client.close()
                raise UnexpectedEOF
    except (NatsError, OSError, TimeoutError) as error:
        raise first.unreachable(error) from None
    first.is_over = True
    await refuse_old_nats(client, MINIMUM_VERSION)
    return client


class _FirstConnection:
    """Ends the attempts of nats-py to connect for the first time, which it repeats forever.

    nats-py calls `note_error` after each failed attempt, and what `note_error` raises ends the
    attempts. They end at once if the server rejects the credentials, and at the deadline. The
    cancellation by `asyncio.timeout` alone does not end them: nats-py can swallow it (see
    `tocsin.core.cancellation`), and its loop never returns.

    The rejection is kept: a server that rejects credentials closes the connection, and the same
    rejection can also appear as a connection reset.
    """

    def __init__(
        self, urls: list[str], on_error: Callable[[Exception], None], client: TocsinNatsClient
    ) -> None:
        self._urls = urls
        self._on_error = on_error
        self._client = client
        self._ends_s = asyncio.get_running_loop().time() + _CONNECT_S
        self._latest: Exception | None = None
        self.is_over = False

    async def note_error(self, error: Exception) -> None:
        self._on_error(error)
        self._client.note_denial(error)
        if self.is_over:
            return
        self._latest = error
        if _is_final(error) or asyncio.get_running_loop().time() > self._ends_s:
            raise error

    def unreachable(self, error: Exception) -> Unreachable:
        """The error to raise: that of the last attempt says more than a timeout."""
        if _is_rejection(error):
            return WrongAddress(
                f"nats at {_shown(self._urls)} rejects the user or the password ({error})",
                remedy="check both in TOCSIN_NATS, or the key that TOCSIN_NATS_CREDS or TOCSIN_NATS_NKEY names",
            )
        if isinstance(error, ClearTextRefused):
            return WrongAddress(
                f"nats at {_shown(self._urls)}: {error}, and nothing is sent in clear text beyond this machine",
                remedy="turn on tls in the server (deploy/nats), or set TOCSIN_ALLOW_CLEAR_TEXT=1 if every "
                "network between the two is trusted",
            )
        if isinstance(error, ssl.SSLCertVerificationError):
            return WrongAddress(
                f"the certificate of nats at {_shown(self._urls)} is not trusted ({error.verify_message})",
                remedy="name the authority that signed it in TOCSIN_NATS_CA, and the host of the certificate in "
                "TOCSIN_NATS",
            )
        return _unreachable(self._urls, self._latest or error)


def nats_urls(settings: Settings) -> list[str]:
    return [url.strip() for url in settings.nats.split(",") if url.strip()]


@asynccontextmanager
async def open_bus(
    settings: Settings, name: str, on_error: Callable[[Exception], None] | None = None
) -> AsyncIterator[Client]:
    """A connection for the length of the block.

    Raises what `connect_bus` raises; a failing close is ignored.
    """
    client = await connect_bus(settings, name, on_error)
    try:
        yield client
    finally:
        with suppress(NatsError, OSError):  # the server may be gone
            await client.close()


async def refuse_old_nats(client: Client, minimum: tuple[int, int]) -> None:
    version = client.connected_server_version
    if (version.major, version.minor) < minimum:
        await client.close()
        shown = f"{version.major}.{version.minor}.{version.patch}"
        raise Refused(f"nats {shown} is too old", remedy=f"tocsin needs {minimum[0]}.{minimum[1]} or newer")


def is_forbidden(error: Exception) -> bool:
    """Whether an error is a missing permission.

    NATS reports it apart from the request, which gets no answer.
    """
    return "permissions violation" in str(error).lower()


def _is_rejection(error: Exception) -> bool:
    """Whether the server rejects our credentials. Another attempt with them has the same result."""
    return "authorization violation" in str(error).lower()


def _is_final(error: Exception) -> bool:
    """Whether another attempt has the same result."""
    return _is_rejection(error) or isinstance(error, ClearTextRefused | ssl.SSLCertVerificationError)


def _log_error(error: Exception) -> None:
    if is_forbidden(error):
        _log.error("nats permission missing", error=error)
    else:
        _log.debug("nats connection error", error=error)


async def _probe(urls: list[str]) -> None:
    failure: BaseException | None = None
    for url in urls:
        parts = urlsplit(url if "//" in url else f"nats://{url}")
        try:
            if not parts.hostname:
                raise ValueError(f"{parts.geturl().rpartition('@')[2]!r} has no host")
            async with asyncio.timeout(_PROBE_S):
                reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 4222)
                banner = await reader.readline()
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
            if banner.startswith(b"INFO "):
                return
            failure = OSError("the server there is not nats")
        except (OSError, TimeoutError, ValueError) as error:
            failure = error
    raise _unreachable(urls, failure)


def _unreachable(urls: list[str], error: BaseException | None) -> Unreachable:
    reason = str(error) or type(error).__name__
    return Unreachable(
        f"cannot reach nats at {_shown(urls)} ({reason})",
        remedy="start it, or set TOCSIN_NATS to a reachable server",
    )


def _shown(urls: list[str]) -> str:
    """The addresses without their passwords."""
    return ", ".join(url.rpartition("@")[2] for url in urls)
