"""Series that somebody expects and that nobody has ever seen: unknown. Pure.

Guarantee: an expectation is an owner of a datapoint_type, or a member of a system. It is met by any series of the owner
that has the key, or whose type it is; until then it is unknown. That is a question and no timer: nothing is armed
for what has never spoken, and nothing fires.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rules.engine import TypeIndex
from schemas.documents.system import SystemDocument


class Expected(NamedTuple):
    owner: str
    key: str | None
    """None: any series of the type."""
    type: str | None
    by: str
    """The document that expects it."""


def expectations(types: TypeIndex, systems: Iterable[SystemDocument]) -> list[Expected]:
    """By owner; each series once, however many documents expect it."""
    found: dict[tuple[str, str | None, str | None], Expected] = {}
    for one in types.types:
        for owner in one.owners:
            given = Expected(owner, None, one.name, f"datapoint_type {one.name}")
            found.setdefault(given[:3], given)
    for system in systems:
        for member in system.members:
            given = Expected(member.owner, member.key, member.type, f"system {system.name}")
            found.setdefault(given[:3], given)
    return sorted(found.values(), key=lambda one: (one.owner, one.key or "", one.type or "", one.by))


def unseen(
    expected: Iterable[Expected], seen: Mapping[str, Iterable[str]], types: TypeIndex
) -> list[Expected]:
    """`seen`: the keys of each owner."""
    return [one for one in expected if not any(_meets(key, one, types) for key in seen.get(one.owner, ()))]


def _meets(key: str, expected: Expected, types: TypeIndex) -> bool:
    if expected.key is not None:
        return key == expected.key
    holds = types.of(key)
    return holds is not None and holds.name == expected.type
