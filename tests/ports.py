"""Free TCP ports of this host."""

from __future__ import annotations

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
