"""What applying a set of files would change. Pure: from what is stored and what the files say to a list of changes.

Guarantee: `plan` and `apply` decide by this one function, so what is shown is what is done. A document is compared
as this version of Tocsin reads it: a new key with its default is no change. Only with `prune` is anything
removed, and then everything that is stored and not in the files.

A document is known by kind and name. One that got another name or another kind is one removed and one added.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from rules.apply.diff import Difference, differences
from rules.documents.load import Loaded
from schemas.documents import KINDS
from tocsin.core.db import Connection, fetch_all

Outcome = Literal["added", "changed", "removed", "unchanged"]
OUTCOMES: tuple[Outcome, ...] = ("added", "changed", "removed", "unchanged")
Key = tuple[str, str]
"""Kind and name."""


class Stored(NamedTuple):
    """The newest version of a document; `holds` is false for one that was removed."""

    kind: str
    name: str
    version: int
    document: dict[str, Any]
    holds: bool


@dataclass(frozen=True)
class Change:
    kind: str
    name: str
    outcome: Outcome
    version: int
    """The version that the change makes; of what is removed or unchanged, the last one."""
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    model: BaseModel | None = None
    """What the file says."""

    @property
    def key(self) -> Key:
        return self.kind, self.name

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Of a changed document; none otherwise."""
        if self.before is None or self.after is None:
            return ()
        return tuple(differences(self.before, self.after))


@dataclass(frozen=True)
class Plan:
    changes: tuple[Change, ...]
    """In the order of the files; then what is removed, by kind and name."""

    @property
    def effective(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.outcome != "unchanged")

    @property
    def removed(self) -> frozenset[Key]:
        return frozenset(change.key for change in self.changes if change.outcome == "removed")

    def of_kind(self, kind: str) -> tuple[Change, ...]:
        """What changes of a kind."""
        return tuple(change for change in self.effective if change.kind == kind)

    def counts(self) -> dict[Outcome, int]:
        found = Counter(change.outcome for change in self.changes)
        return {outcome: found[outcome] for outcome in OUTCOMES if found[outcome]}


def plan(loaded: Loaded, stored: Iterable[Stored], *, prune: bool = False) -> Plan:
    newest = {(one.kind, one.name): one for one in stored}
    changes = []
    for document in loaded.documents:
        known = newest.pop((document.kind, document.name), None)
        before = _as_read_now(known) if known is not None and known.holds else None
        version = known.version if known is not None else 0
        same = before is not None and not any(differences(before, document.data))
        outcome: Outcome = "unchanged" if same else "added" if before is None else "changed"
        changes.append(
            Change(
                document.kind,
                document.name,
                outcome,
                version if same else version + 1,
                before,
                document.data,
                document.model,
            )
        )
    if prune:
        gone = sorted(one for one in newest.values() if one.holds)
        changes += [
            Change(one.kind, one.name, "removed", one.version, _as_read_now(one), None) for one in gone
        ]
    return Plan(tuple(changes))


async def read_stored(connection: Connection) -> list[Stored]:
    rows = await fetch_all(connection, "rules.documents/list_newest_documents")
    return [Stored(*row) for row in rows]


def _as_read_now(one: Stored) -> dict[str, Any]:
    model = KINDS.get(one.kind)
    document = _canonical(one.document)
    if model is None:
        return document
    try:
        return model.model_validate(document).model_dump(mode="json", by_alias=True)
    except ValidationError:
        # An older Tocsin took what this one would not: it differs from whatever the file says now.
        return document


def _canonical(document: dict[str, Any]) -> dict[str, Any]:
    """As it compares before and after Postgres, which writes 1e23 with all its digits."""

    def number(digits: str) -> int | float:
        return int(digits) if len(digits) < 20 else float(digits)

    found: dict[str, Any] = json.loads(json.dumps(document), parse_int=number)
    return found
