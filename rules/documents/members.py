"""The members of systems, as series.

Guarantee: a member that is named by its type is every series of its owner that has the type; until one was seen it
has a place of its own, without a key, so that it counts as never seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rules.engine import CompiledRules
from schemas.documents.system import SystemDocument


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
    holds: bool
    """While it is silent, it is as it was."""


class Members:
    def __init__(self, systems: Iterable[SystemDocument] = ()) -> None:
        self._named: defaultdict[tuple[str, str], list[MemberRow]] = defaultdict(list)
        self._typed: defaultdict[tuple[str, str], list[MemberRow]] = defaultdict(list)
        self.systems: set[str] = set()
        for system in systems:
            self.systems.add(system.name)
            for one in system.members:
                row = MemberRow(
                    system.name, one.owner, one.key or "", one.type or "", one.required, False, False
                )
                (self._typed if row.type else self._named)[row.owner, row.type or row.key].append(row)
        self.owners = frozenset(owner for owner, _ in (*self._named, *self._typed))

    def of_series(self, owner: str, key: str, rules: CompiledRules) -> list[MemberRow]:
        """As which members a series counts."""
        if owner not in self.owners:
            return []
        found = self._named.get((owner, key), [])
        holds = rules.types.of(key)
        if holds is not None:
            found = found + self._typed.get((owner, holds.name), [])
        return [_of_key(row, key, rules) for row in found]

    def owners_of(self, system: str) -> set[str]:
        rows = (row for rows in (*self._named.values(), *self._typed.values()) for row in rows)
        return {row.owner for row in rows if row.system == system}

    def rows(self, seen: Mapping[str, Iterable[str]], rules: CompiledRules) -> list[MemberRow]:
        """All of them. `seen`: the keys of each owner."""
        typed = {
            row
            for owner in self.owners
            for key in seen.get(owner, ())
            for row in self.of_series(owner, key, rules)
            if row.type
        }
        met = {unmet(row) for row in typed}
        named = {
            _of_key(row, row.key, rules) if row.key else row
            for rows in (*self._named.values(), *self._typed.values())
            for row in rows
        }
        return sorted((named - met) | typed)


def unmet(row: MemberRow) -> MemberRow:
    """The place of a member that is named by its type, until a series of it was seen."""
    return row._replace(key="", covered=False, holds=False)


def _of_key(row: MemberRow, key: str, rules: CompiledRules) -> MemberRow:
    """Covered: something could ever say that the series is ill."""
    holds = rules.types.holds(key)
    is_watched = rules.types.stale_after(key) is not None
    return row._replace(key=key, covered=bool(rules.for_key(key)) or (is_watched and not holds), holds=holds)
