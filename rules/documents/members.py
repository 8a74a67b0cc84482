"""Finds the series that count as members of systems.

Guarantee: a member that is named by its type stands for every series of its owner that has the
type, and one that is named by its key for every series with that key, whatever its dimensions are.
Until the first of them sends a datapoint, the member has one row, which counts as no data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rules.engine import CompiledRules
from schemas.documents.system import SystemDocument
from schemas.values.series_key import base_key


class MemberRow(NamedTuple):
    """A row of `system_member`."""

    system: str
    owner: str
    key: str
    """Empty: no series of the type has sent a datapoint yet."""
    type: str
    """Empty: the member is named by its key."""
    required: bool
    covered: bool
    """Whether anything can detect a problem: an event_rule, or staleness."""
    holds: bool
    """Whether the last value stays valid while the series is stale."""


class Members:
    def __init__(self, systems: Iterable[SystemDocument] = ()) -> None:
        self._by_key: defaultdict[tuple[str, str], list[MemberRow]] = defaultdict(list)
        self._by_type: defaultdict[tuple[str, str], list[MemberRow]] = defaultdict(list)
        self.systems: set[str] = set()
        for system in systems:
            self.systems.add(system.name)
            for member in system.members:
                key, type = member.key or "", member.type or ""
                row = MemberRow(system.name, member.owner, key, type, member.required, False, False)
                (self._by_type if type else self._by_key)[row.owner, type or key].append(row)
        self.owners = frozenset(owner for owner, _ in (*self._by_key, *self._by_type))

    def of_series(self, owner: str, key: str, rules: CompiledRules) -> list[MemberRow]:
        """The members that a series counts as."""
        if owner not in self.owners:
            return []
        rows = self._by_key.get((owner, base_key(key)), [])
        type = rules.types.of(key)
        if type is not None:
            rows = rows + self._by_type.get((owner, type.name), [])
        return [_with_key(row, key, rules) for row in rows]

    def owners_of(self, system: str) -> set[str]:
        return {row.owner for row in self._all() if row.system == system}

    def rows(self, seen: Mapping[str, Iterable[str]], rules: CompiledRules) -> list[MemberRow]:
        """All members. `seen`: by owner, the keys of the series that have sent a datapoint."""
        found = {
            row
            for owner in self.owners
            for key in seen.get(owner, ())
            for row in self.of_series(owner, key, rules)
            if is_found(row)
        }
        named = {_with_key(row, row.key, rules) if row.key else row for row in self._all()}
        return sorted((named - {unseen_member(row) for row in found}) | found)

    def _all(self) -> Iterable[MemberRow]:
        return (row for rows in (*self._by_key.values(), *self._by_type.values()) for row in rows)


def is_found(row: MemberRow) -> bool:
    """Whether the series became known by its data only: by its type, or by its dimensions."""
    return bool(row.type) or "{" in row.key


def unseen_member(row: MemberRow) -> MemberRow:
    """The row of a member before the first series that `is_found` for it."""
    if row.type:
        return row._replace(key="", covered=False, holds=False)
    return row._replace(key=base_key(row.key))


def _with_key(row: MemberRow, key: str, rules: CompiledRules) -> MemberRow:
    holds = rules.types.holds(key)
    is_watched = rules.types.stale_after(key) is not None
    return row._replace(key=key, covered=bool(rules.for_key(key)) or (is_watched and not holds), holds=holds)
