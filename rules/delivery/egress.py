"""Checks and opens every connection to a target of a delivery or a probe.

Guarantee: a connection goes to an address that was checked after its name was resolved, and to no
other. The name is resolved once, so a DNS answer that changes in between (DNS rebinding) has no
effect. Internal addresses are rejected unless `TOCSIN_EGRESS_ALLOW` names them. Certificates are
always verified, against the name (by the callers, with `Egress.tls`).

Why the check is about addresses and not about names: any name may resolve to 127.0.0.1, and
`0x7f.1` is another way to write 127.0.0.1.

On failure: `EgressRefused` if no address may be used, `Unreachable` if none answers.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

import aiohappyeyeballs

from rules.delivery.addresses import why_internal
from tocsin.core.allow_list import AllowList
from tocsin.core.errors import InvalidInput, Unreachable
from tocsin.core.settings import Settings

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host and a port to addresses."""

_NEXT_ADDRESS_DELAY_S = 0.25


class EgressRefused(InvalidInput):
    """The target is an internal address that `TOCSIN_EGRESS_ALLOW` does not name."""


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    results = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for _, _, _, _, sockaddr in results]


@dataclass(frozen=True)
class Egress:
    allow_list: AllowList
    tls: ssl.SSLContext
    resolve: Resolver = resolve_by_system
    ca_file: str = ""

    @classmethod
    def from_settings(cls, settings: Settings, resolve: Resolver = resolve_by_system) -> "Egress":
        tls = ssl.create_default_context()
        if settings.egress_ca:
            try:
                tls.load_verify_locations(cafile=settings.egress_ca)
            except (OSError, ssl.SSLError) as error:
                reason = error.strerror or "it has no certificate"
                raise InvalidInput(
                    f"TOCSIN_EGRESS_CA={settings.egress_ca!r} cannot be used: {reason.lower()}"
                ) from None
        return cls(AllowList.parse(settings.egress_allow), tls, resolve, settings.egress_ca)

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host that may be used. No other function resolves a name."""
        try:
            resolved = await self.resolve(host, port)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a host name"
            raise Unreachable(f"{host} cannot be resolved: {(reason or str(error)).lower()}") from None
        reasons = {address: self.refusal(host, address, port) for address in resolved}
        usable = [address for address, reason in reasons.items() if reason is None]
        if not usable:
            address, reason = next(iter(reasons.items()), (host, "no address"))
            target = f"{host} is " if address == host else f"{host} resolves to {address}, "
            raise EgressRefused(f"{target}{reason}", remedy="allow it with TOCSIN_EGRESS_ALLOW")
        return usable

    def refusal(self, host: str, address: str, port: int) -> str | None:
        """The reason if an address is rejected, else None."""
        parsed = ip_address(address.partition("%")[0])
        return None if self.allow_list.allows(host, parsed, port) else why_internal(parsed)

    async def open(self, host: str, port: int) -> socket.socket:
        """A connected, non-blocking socket."""
        infos = [_addr_info(address, port) for address in await self.addresses(host, port)]
        try:
            return await aiohappyeyeballs.start_connection(infos, happy_eyeballs_delay=_NEXT_ADDRESS_DELAY_S)
        except OSError as error:
            problem = connection_problem(error)
            raise Unreachable(f"{host_and_port(host, port)} cannot be reached: {problem}") from None


def host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def connection_problem(error: OSError) -> str:
    """The problem in a few words, without the addresses and urls that libraries add."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"tls failed ({(error.reason or 'unknown').lower().replace('_', ' ')})"
    return (error.strerror or type(error).__name__).lower().partition(" [")[0]


def _addr_info(
    address: str, port: int
) -> tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int]]:
    """An argument of aiohappyeyeballs, in the form of an entry of getaddrinfo."""
    if ":" in address:
        plain, _, scope = address.partition("%")
        if not scope:
            index = 0
        elif scope.isdigit():
            index = int(scope)
        else:
            index = socket.if_nametoindex(scope)
        return socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (plain, port, 0, index)
    return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)
