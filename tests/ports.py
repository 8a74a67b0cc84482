"""TCP ports of this host."""

from __future__ import annotations

from urllib.parse import urlsplit

from tocsin.embedded.nats import _free, _random_ports


def free_ports(count: int) -> list[int]:
    """Ports that are free now; the servers bind them right after, or again when they are restarted.

    No outgoing connection takes one of them in between: they are below the range of the system for
    those.
    """
    found: list[int] = []
    for port in _random_ports():
        if port not in found and _free(port):
            found.append(port)
        if len(found) == count:
            break
    return found


def at_port(url: str, port: int) -> str:
    """The address of a server with its credentials, reached through another port of this host."""
    credentials, _, _ = urlsplit(url).netloc.rpartition("@")
    return f"nats://{credentials}{'@' if credentials else ''}127.0.0.1:{port}"
