"""The quotas of owners as a setting: `plant-* series 50000, load-test datapoints 0`.

Guarantee: the first entry whose pattern matches an owner and whose quota is asked for decides; without
one the default holds. 0 is no limit. `*` stands for any characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import lru_cache

NO_LIMIT = 2**63
KINDS = ("series", "datapoints", "bytes", "events")
_ENTRY = re.compile(r"(\S{1,128})\s+([a-z]+)\s+([0-9]{1,15})")


@dataclass(frozen=True)
class OwnerQuota:
    """What one owner may have or send; 0 is no limit."""

    series: int = 0
    datapoints: int = 0
    bytes: int = 0
    events: int = 0


class QuotaPatterns:
    def __init__(self, default: OwnerQuota, entries: list[tuple[re.Pattern[str], str, int]]) -> None:
        self._default = default
        self._entries = entries
        self.of = lru_cache(maxsize=20_000)(self._of)

    @classmethod
    def parse(cls, text: str, default: OwnerQuota) -> QuotaPatterns:
        """`ValueError` with a sentence if an entry cannot be read."""
        entries = []
        for entry in filter(None, (part.strip() for part in text.split(","))):
            found = _ENTRY.fullmatch(entry)
            if found is None or found[2] not in KINDS:
                raise ValueError(
                    f"the quota {entry!r} is not 'OWNER-PATTERN KIND NUMBER': write 'plant-* series 50000', with a "
                    f"kind of {', '.join(KINDS)}"
                )
            # `[` has no meaning of its own in a pattern of owners.
            pattern = re.compile(translate(found[1].replace("[", "[[]")))
            entries.append((pattern, found[2], int(found[3])))
        return cls(default, entries)

    def _of(self, owner: str) -> OwnerQuota:
        quota = self._default
        for pattern, kind, limit in reversed(self._entries):
            if pattern.match(owner):
                quota = replace(quota, **{kind: limit})
        return quota


def check_quotas(text: str) -> str:
    QuotaPatterns.parse(text, OwnerQuota())
    return text
