"""A service manager for the tests: the socket that systemd gives to a unit of `Type=notify`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Notifications:
    """The reports of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(60)

    def next(self) -> list[str]:
        """The lines of the next report. `TimeoutError` if none comes."""
        return self._socket.recv(4096).decode().split("\n")

    def until(self, line: str) -> list[list[str]]:
        """The reports up to the one with the line."""
        reports = [self.next()]
        while line not in reports[-1]:
            reports.append(self.next())
        return reports

    def close(self) -> None:
        self._socket.close()


@contextmanager
def notifications(folder: Path) -> Iterator[Notifications]:
    # A socket path has at most 107 bytes.
    opened = Notifications(folder / "n")
    try:
        yield opened
    finally:
        opened.close()
