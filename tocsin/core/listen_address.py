"""An address to listen on: `host:port`.

Guarantee: the parsed value is a host or an address, and a port. Any other text is rejected at
start-up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tocsin.core.errors import InvalidInput

_ADDRESS = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9_.-]+)):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True)
class ListenAddress:
    text: str
    host: str
    port: int
    """0 means any free port."""

    @classmethod
    def parse(cls, text: str) -> ListenAddress:
        match = _ADDRESS.fullmatch(text)
        if not match or int(match["port"]) > 65_535:
            raise InvalidInput(
                f"{text!r} is not an address to listen on",
                remedy="write host:port, such as 127.0.0.1:9464 or [::1]:9464",
            )
        return cls(text, match["v6"] or match["host"], int(match["port"]))

    @property
    def shown_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host
