"""The rule book: the documents in force at each seq, and their compiled form.

Guarantee: the documents that decide about one input were in force together, however late the input
is read and however often rules were applied since. Documents change only at the seq of a
`rules-applied` event, so one compiled form serves all seqs between two of them. The next `refresh`
reads a new apply; no restart is needed.

Lanes choose the seq differently. The record lane uses the seq of the record: `refresh`, then `at`.
The sequences of the data lane are different ones, so it uses the newest apply (`newest_rules`, then
`at` that seq + 1). That apply must still be the newest once the batch has locked its partition. An
apply locks all partitions, so no batch runs while the rules change, and the apply itself stores how
far each partition had been read (`rules/apply/cutover.py`).

`compile` makes the compiled form of a rule set. It receives the form that it made last, so that it
can reuse what did not change.

On failure: a stored document that this version of Tocsin cannot read is logged and skipped; the
others stay in force.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import structlog
from pydantic import BaseModel, ValidationError

from schemas.documents import DOCUMENT_KINDS
from tocsin.core.db import Connection, fetch_all, fetch_value

_log = structlog.get_logger()
_KIND_OF = {model: kind for kind, model in DOCUMENT_KINDS.items()}

Model = TypeVar("Model", bound=BaseModel)
Compiled = TypeVar("Compiled")


@dataclass(frozen=True)
class _Version:
    """A row of rules.documents/list_versions."""

    kind: str
    name: str
    number: int
    document: dict[str, Any]
    from_seq: int
    until_seq: int | None

    @property
    def key(self) -> tuple[str, str, int]:
        return self.kind, self.name, self.number

    def is_in_force_at(self, seq: int) -> bool:
        return self.from_seq < seq and (self.until_seq is None or seq <= self.until_seq)


class RuleSet:
    """Documents that are in force together, as models by kind and name."""

    def __init__(self, models: Iterable[BaseModel]) -> None:
        self._models: dict[type[BaseModel], dict[str, BaseModel]] = {}
        for model in models:
            self._models.setdefault(type(model), {})[str(getattr(model, "name", ""))] = model

    def of(self, kind: type[Model]) -> Mapping[str, Model]:
        return cast(Mapping[str, Model], self._models.get(kind, {}))


class RuleBook(Generic[Compiled]):
    def __init__(
        self, compile: Callable[[RuleSet, Compiled | None], Compiled], *kinds: type[BaseModel]
    ) -> None:
        """`kinds` are the kinds of documents that `compile` needs; others are not read."""
        self._compile = compile
        self._kinds = [_KIND_OF[kind] for kind in kinds]
        self._newest = -1
        self._oldest = 0
        self._versions: list[_Version] = []
        self._boundaries: list[int] = []
        self._compiled: dict[int, Compiled] = {}
        self._last_compiled: Compiled | None = None
        self._models: dict[tuple[str, str, int], BaseModel | None] = {}

    async def refresh(self, connection: Connection, oldest_seq: int) -> None:
        """Read the applies since the last call.

        Call it before a batch that begins at `oldest_seq`.
        """
        newest = await newest_rules(connection)
        if newest != self._newest or oldest_seq < self._oldest:
            await self._read(connection, newest, oldest_seq)

    def at(self, seq: int) -> Compiled:
        """The compiled form of the documents that are in force for the record at a seq."""
        index = bisect_left(self._boundaries, seq)
        if index not in self._compiled:
            models = (self._model(version) for version in self._versions if version.is_in_force_at(seq))
            documents = RuleSet(model for model in models if model is not None)
            self._last_compiled = self._compiled[index] = self._compile(documents, self._last_compiled)
        return self._compiled[index]

    async def _read(self, connection: Connection, newest: int, oldest_seq: int) -> None:
        parameters = {"after": oldest_seq - 1, "kinds": self._kinds}
        self.load(await fetch_all(connection, "rules.documents/list_versions", parameters))
        self._newest, self._oldest = newest, oldest_seq

    def load(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Replace the versions by rows in the form of rules.documents/list_versions."""
        versions = (_Version(*row) for row in rows)
        self._versions = [version for version in versions if version.kind in self._kinds]
        bounds = {bound for version in self._versions for bound in (version.from_seq, version.until_seq)}
        self._boundaries = sorted(bound for bound in bounds if bound is not None)
        self._compiled.clear()
        in_use = {version.key for version in self._versions}
        self._models = {key: model for key, model in self._models.items() if key in in_use}

    def _model(self, version: _Version) -> BaseModel | None:
        """The model of a version. It was checked by its apply, but a newer model may reject it."""
        if version.key not in self._models:
            try:
                self._models[version.key] = DOCUMENT_KINDS[version.kind].model_validate(version.document)
            except ValidationError as error:
                _log.error("document cannot be used", kind=version.kind, name=version.name, error=error)
                self._models[version.key] = None
        return self._models[version.key]


async def newest_rules(connection: Connection) -> int:
    """The seq of the newest apply; 0 before the first."""
    return int(await fetch_value(connection, "rules.documents/read_newest_rules"))


async def applied_documents(connection: Connection, *kinds: type[BaseModel]) -> list[BaseModel]:
    """The documents in force of some kinds, without those that `parse_document` rejects."""
    rows = await fetch_all(connection, "rules.documents/list_newest_documents")
    wanted = {_KIND_OF[kind] for kind in kinds}
    models = (
        parse_document(kind, document)
        for kind, _, _, document, is_in_force in rows
        if kind in wanted and is_in_force
    )
    return [model for model in models if model is not None]


async def known_names(connection: Connection) -> dict[str, frozenset[str]]:
    """The names of the documents in force, by kind. The loader checks references against them."""
    rows = await fetch_all(connection, "rules.documents/list_newest_documents")
    names: dict[str, set[str]] = {}
    for kind, name, _, _, is_in_force in rows:
        if is_in_force:
            names.setdefault(kind, set()).add(name)
    return {kind: frozenset(names_of_kind) for kind, names_of_kind in names.items()}


def parse_document(kind: str, document: Mapping[str, Any]) -> BaseModel | None:
    """The model of a stored document; None if this version of Tocsin cannot read it."""
    try:
        return DOCUMENT_KINDS[kind].model_validate(document)
    except (ValidationError, KeyError):
        return None
