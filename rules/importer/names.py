"""Names of imported documents: `HostOutOfMemory` becomes `host-out-of-memory`, each name once."""

from __future__ import annotations

import re

_MAX_LENGTH = 100
_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER = re.compile(r"[^A-Za-z0-9]+")


class Names:
    """Gives each name once, with a number behind the second and later ones."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, text: str) -> str:
        wanted = kebab_case(text) or "rule"
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}-{number}"
        self._taken.add(name)
        return name


def kebab_case(text: str) -> str:
    return _OTHER.sub("-", _BOUNDARY.sub("-", text)).strip("-").lower()[:_MAX_LENGTH].rstrip("-")
