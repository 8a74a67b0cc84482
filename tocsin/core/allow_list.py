"""Internal addresses that deliveries may reach: the parsed value of `TOCSIN_EGRESS_ALLOW`.

Guarantee: an entry is a host name, an address or a network, each with an optional port. Any other
entry is rejected at start-up. A name is trusted wherever it resolves to; an address or a network is
trusted whatever name resolved to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from tocsin.core.errors import InvalidInput

_ENTRY = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:]+))(?::(?P<port>[0-9]{1,5}))?")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?\.?")
_EXAMPLES = (
    "write hosts, host:port or networks, such as hooks.internal, 10.0.0.7:8080, 10.1.0.0/16, [fd00::1]:25"
)


@dataclass(frozen=True)
class AllowList:
    text: str = ""
    """The original text, which another process parses again."""
    hosts: frozenset[tuple[str, int | None]] = frozenset()
    networks: tuple[tuple[IPv4Network | IPv6Network, int | None], ...] = ()

    @classmethod
    def parse(cls, text: str) -> AllowList:
        hosts: set[tuple[str, int | None]] = set()
        networks: list[tuple[IPv4Network | IPv6Network, int | None]] = []
        for entry in filter(None, (part.strip() for part in text.split(","))):
            network = _network(entry)
            match = _ENTRY.fullmatch(entry)
            port = int(match["port"]) if match and match["port"] else None
            if network is not None:
                networks.append((network, None))
            elif not match or (port is not None and not 1 <= port <= 65_535):
                raise InvalidInput(f"{entry!r} cannot be allowed", remedy=_EXAMPLES)
            elif (of_entry := _network(match["v6"] or match["host"])) is not None:
                networks.append((of_entry, port))
            elif match["host"] and _HOST.fullmatch(match["host"]) and not _all_numeric(match["host"]):
                hosts.add((match["host"].lower().rstrip("."), port))
            else:
                raise InvalidInput(f"{entry!r} cannot be allowed", remedy=_EXAMPLES)
        return cls(text, frozenset(hosts), tuple(networks))

    def allows(self, host: str, address: IPv4Address | IPv6Address, port: int) -> bool:
        name = host.lower().rstrip(".")
        return bool({(name, None), (name, port)} & self.hosts) or any(
            address in network and of_port in (None, port) for network, of_port in self.networks
        )


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text)
    except ValueError as error:
        if "host bits" in str(error):
            raise InvalidInput(
                f"{text!r} is not a network", remedy=f"write {ip_network(text, strict=False)}"
            ) from None
        return None


def _all_numeric(host: str) -> bool:
    """Whether `host` is a mistyped address such as `10.1` or `10.0.0.256`, not a name."""
    return all(part.isdigit() for part in host.rstrip(".").split("."))
