"""Plans an apply: compares the documents of files with the stored ones.

`plan_changes` is pure; `read_stored` reads the database.

Guarantee: `preview` and `apply` both call `plan_changes`, so the changes that are shown are the
changes that are made. A document is compared as this version of Tocsin reads it: a new key with its
default is no change. Documents are removed only with `prune`, and then all that are stored and not
in the files.

Kind and name identify a document. A document with a new name or a new kind is one removed and one
added.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from rules.apply.diff import FieldDifference, differences
from rules.documents.load import LoadedDocuments
from schemas.documents import DOCUMENT_KINDS
from tocsin.core.db import Connection, fetch_all

ChangeOutcome = Literal["added", "changed", "removed", "unchanged"]
CHANGE_OUTCOMES: tuple[ChangeOutcome, ...] = ("added", "changed", "removed", "unchanged")
DocumentKey = tuple[str, str]
"""Kind and name."""


class StoredDocument(NamedTuple):
    """The newest version of a document; `in_force` is false for one that was removed."""

    kind: str
    name: str
    version: int
    content: dict[str, Any]
    in_force: bool


@dataclass(frozen=True)
class DocumentChange:
    kind: str
    name: str
    outcome: ChangeOutcome
    version: int
    """The version that the change creates; the last version of a removed or unchanged document."""
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    model: BaseModel | None = None
    """The document of the file."""

    @property
    def key(self) -> DocumentKey:
        return self.kind, self.name

    @cached_property
    def differences(self) -> tuple[FieldDifference, ...]:
        """The differences of a changed document; empty for any other."""
        if self.before is None or self.after is None:
            return ()
        return tuple(differences(self.before, self.after))


@dataclass(frozen=True)
class ApplyPlan:
    changes: tuple[DocumentChange, ...]
    """In the order of the files; then the removed documents, by kind and name."""

    @property
    def effective(self) -> tuple[DocumentChange, ...]:
        """The changes other than `unchanged`."""
        return tuple(change for change in self.changes if change.outcome != "unchanged")

    @property
    def removed(self) -> frozenset[DocumentKey]:
        return frozenset(change.key for change in self.changes if change.outcome == "removed")

    def of_kind(self, kind: str) -> tuple[DocumentChange, ...]:
        """The effective changes of documents of a kind."""
        return tuple(change for change in self.effective if change.kind == kind)

    def counts(self) -> dict[ChangeOutcome, int]:
        counts = Counter(change.outcome for change in self.changes)
        return {outcome: counts[outcome] for outcome in CHANGE_OUTCOMES if counts[outcome]}


def plan_changes(
    loaded: LoadedDocuments, stored: Iterable[StoredDocument], *, prune: bool = False
) -> ApplyPlan:
    newest = {(document.kind, document.name): document for document in stored}
    changes = []
    for document in loaded.documents:
        former = newest.pop((document.kind, document.name), None)
        before = _with_current_defaults(former) if former is not None and former.in_force else None
        version = former.version if former is not None else 0
        is_same = before is not None and not any(differences(before, document.data))
        outcome: ChangeOutcome
        if is_same:
            outcome = "unchanged"
        elif before is None:
            outcome = "added"
        else:
            outcome = "changed"
        changes.append(
            DocumentChange(
                document.kind,
                document.name,
                outcome,
                version if is_same else version + 1,
                before,
                document.data,
                document.model,
            )
        )
    if prune:
        changes += [
            DocumentChange(
                former.kind, former.name, "removed", former.version, _with_current_defaults(former), None
            )
            for former in sorted(former for former in newest.values() if former.in_force)
        ]
    return ApplyPlan(tuple(changes))


async def read_stored(connection: Connection) -> list[StoredDocument]:
    rows = await fetch_all(connection, "rules.documents/list_newest_documents")
    return [StoredDocument(*row) for row in rows]


def _with_current_defaults(stored: StoredDocument) -> dict[str, Any]:
    """The content as this version of Tocsin reads it: keys that are new since have their defaults."""
    model = DOCUMENT_KINDS.get(stored.kind)
    content = _canonical(stored.content)
    if model is None:
        return content
    try:
        return model.model_validate(content).model_dump(mode="json", by_alias=True)
    except ValidationError:
        # An older version of Tocsin accepted this document and this version does not. It is compared
        # as stored, so every document of a file differs from it.
        return content


def _canonical(content: dict[str, Any]) -> dict[str, Any]:
    """The content with its numbers as a file would have them.

    jsonb returns 1e23 as 100000000000000000000000, which Python reads as an int. An int of 20 or
    more digits becomes a float again, so that both sides compare equal.
    """

    def number(digits: str) -> int | float:
        return int(digits) if len(digits) < 20 else float(digits)

    canonical: dict[str, Any] = json.loads(json.dumps(content), parse_int=number)
    return canonical
