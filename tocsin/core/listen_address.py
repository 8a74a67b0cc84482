"""Where to listen: `host:port`, read.

Guarantee: what is read is a host or an address, and a port; anything else is refused at start-up.
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
    """0: any that is free."""

    @classmethod
    def parse(cls, text: str) -> ListenAddress:
        found = _ADDRESS.fullmatch(text)
        if not found or int(found["port"]) > 65_535:
            raise InvalidInput(
                f"{text!r} is no address to listen on",
                remedy="write host:port, such as 127.0.0.1:9464 or [::1]:9464",
            )
        return cls(text, found["v6"] or found["host"], int(found["port"]))

    @property
    def shown_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host
