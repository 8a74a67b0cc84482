"""Bindings of secrets: `name@host`, or `name@host/channel`.

Guarantee: a host is compared as a whole and without case. `*` stands for every host and has to be
written explicitly. On failure: `InvalidInput` that shows the entry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tocsin.core.errors import InvalidInput

BINDINGS_FILE = "bindings"
_ENTRY = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9-]{0,62})@(?P<host>\*|[^\s/@,*]{1,253})(/(?P<channel>[^\s/@,]{1,200}))?"
)


@dataclass(frozen=True)
class SecretBinding:
    name: str
    host: str
    channel: str = ""
    """Empty: every channel, and every step of an action."""

    def allows(self, host: str, channel: str) -> bool:
        return self.host in ("*", host.lower()) and self.channel in ("", channel)


def parse_bindings(text: str) -> tuple[SecretBinding, ...]:
    """Entries are separated by commas or white space; `#` begins a comment in a line."""
    lines = [line.partition("#")[0] for line in text.splitlines()]
    return tuple(_binding(entry) for entry in re.split(r"[\s,]+", " ".join(lines)) if entry)


def _binding(entry: str) -> SecretBinding:
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise InvalidInput(
            f"{entry[:100]!r} is not a binding of a secret", remedy="write name@host or name@host/channel"
        )
    return SecretBinding(found["name"], found["host"].lower(), found["channel"] or "")
