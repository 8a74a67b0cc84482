"""The members of systems, as series.

Guarantee: a member that is named by its type is every series of its owner that has the type; until one was seen it
has a place of its own, without a key, so that it counts as never seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rules.engine import CompiledRules
from schemas.system_document import SystemDocument


class MemberRow(NamedTuple):
    """A row of `system_member`."""

    system: str
    owner: str
    key: str
    """Empty: no series of the type was seen yet."""
    type: str
    """Empty: it is named by its key."""
    required: bool
    covered: bool


class Members:
    def __init__(self, systems: Iterable[SystemDocument] = ()) -> None:
        self._by_owner: defaultdict[str, list[MemberRow]] = defaultdict(list)
        for system in systems:
            for one in system.members:
                row = MemberRow(system.name, one.owner, one.key or "", one.type or "", one.required, False)
                self._by_owner[one.owner].append(row)

    @property
    def owners(self) -> list[str]:
        return list(self._by_owner)

    def of_series(self, owner: str, key: str, rules: CompiledRules) -> list[MemberRow]:
        """As which members a series counts."""
        found = []
        for row in self._by_owner.get(owner, ()):
            holds = rules.types.of(key) if row.type else None
            if row.key == key or (holds is not None and holds.name == row.type):
                found.append(row._replace(key=key, covered=is_covered(key, rules)))
        return found

    def rows(self, seen: Mapping[str, Iterable[str]], rules: CompiledRules) -> list[MemberRow]:
        """All of them. `seen`: the keys of each owner."""
        named = [row._replace(covered=is_covered(row.key, rules)) for row in self._all()]
        typed = [
            row
            for owner, keys in seen.items()
            for key in keys
            for row in self.of_series(owner, key, rules)
            if row.type
        ]
        return sorted({*named, *typed})

    def _all(self) -> Iterable[MemberRow]:
        return (row for rows in self._by_owner.values() for row in rows)


def is_covered(key: str, rules: CompiledRules) -> bool:
    """Whether anything could ever say that the series is ill."""
    return bool(rules.for_key(key)) or rules.types.deadline(key) is not None
