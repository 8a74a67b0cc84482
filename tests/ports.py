"""Free TCP ports of this host."""

from __future__ import annotations

import socket


def free_ports(count: int) -> list[int]:
    """Ports that are free now; the servers bind them right after."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]
    finally:
        for listener in sockets:
            listener.close()
