"""The rule book: which documents hold at a seq, and what a worker makes of them.

Guarantee: what is judged by one page is judged by documents that held together, never by a mixture, however
late it is judged and whatever was applied meanwhile. Documents change only at the seq of a `rules-applied`
event, so between two of them one page serves; a new apply is seen by the next `refresh`, without a restart.

Which page: in the record lane the one that held at the record's seq (`refresh`, then `at`). In the data lane,
whose sequence is another one, the one behind the newest apply (`newest_rules`, then `at` that seq + 1), and it must
still be the newest behind the lock of the batch's partition: an apply locks all partitions, so no batch is under way
while the rules change, and the apply itself writes down where each partition was (`rules/apply/cutover.py`).

A page is whatever `build` makes of the documents. It is given the page that was built before, so that what
did not change need not be compiled again. On failure: a stored document that this version of Tocsin cannot
read is set aside, and said: the others still hold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import structlog
from pydantic import BaseModel, ValidationError

from schemas.documents import KINDS
from tocsin.core.db import Connection, fetch_all, fetch_one

_log = structlog.get_logger()
_KIND_OF = {model: kind for kind, model in KINDS.items()}

Model = TypeVar("Model", bound=BaseModel)
Page = TypeVar("Page")


@dataclass(frozen=True)
class _Version:
    kind: str
    name: str
    number: int
    document: dict[str, Any]
    from_seq: int
    until_seq: int | None

    @property
    def key(self) -> tuple[str, str, int]:
        return self.kind, self.name, self.number

    def holds_at(self, seq: int) -> bool:
        return self.from_seq < seq and (self.until_seq is None or seq <= self.until_seq)


class RuleSet:
    """The documents that hold together, as models by kind and name."""

    def __init__(self, models: Iterable[BaseModel]) -> None:
        self._models: dict[type[BaseModel], dict[str, BaseModel]] = {}
        for model in models:
            self._models.setdefault(type(model), {})[str(getattr(model, "name", ""))] = model

    def of(self, kind: type[Model]) -> Mapping[str, Model]:
        return cast(Mapping[str, Model], self._models.get(kind, {}))


class RuleBook(Generic[Page]):
    def __init__(self, build: Callable[[RuleSet, Page | None], Page], *kinds: type[BaseModel]) -> None:
        """`kinds` are those that `build` asks for; others are not read."""
        self._build = build
        self._kinds = [_KIND_OF[kind] for kind in kinds]
        self._newest = -1
        self._oldest = 0
        self._versions: list[_Version] = []
        self._boundaries: list[int] = []
        self._pages: dict[int, Page] = {}
        self._last: Page | None = None
        self._models: dict[tuple[str, str, int], BaseModel | None] = {}

    async def refresh(self, connection: Connection, oldest_seq: int) -> None:
        """Read what was applied since the last time; must be called before a batch that begins at `oldest_seq`."""
        newest = await newest_rules(connection)
        if newest != self._newest or oldest_seq < self._oldest:
            await self._read(connection, newest, oldest_seq)

    def at(self, seq: int) -> Page:
        """The page for the record at a seq."""
        place = bisect_left(self._boundaries, seq)
        if place not in self._pages:
            models = (self._model(version) for version in self._versions if version.holds_at(seq))
            rules = RuleSet(model for model in models if model is not None)
            self._last = self._pages[place] = self._build(rules, self._last)
        return self._pages[place]

    async def _read(self, connection: Connection, newest: int, oldest_seq: int) -> None:
        parameters = {"after": oldest_seq - 1, "kinds": self._kinds}
        self.take(await fetch_all(connection, "rules.documents/list_versions", parameters))
        self._newest, self._oldest = newest, oldest_seq

    def take(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Versions that were read elsewhere, as rules/list_versions returns them."""
        self._versions = [one for one in (_Version(*row) for row in rows) if one.kind in self._kinds]
        bounds = {bound for version in self._versions for bound in (version.from_seq, version.until_seq)}
        self._boundaries = sorted(bound for bound in bounds if bound is not None)
        self._pages.clear()
        in_use = {version.key for version in self._versions}
        self._models = {key: model for key, model in self._models.items() if key in in_use}

    def _model(self, version: _Version) -> BaseModel | None:
        """Documents were checked when they were applied; a newer model may refuse what an older one took."""
        if version.key not in self._models:
            try:
                self._models[version.key] = KINDS[version.kind].model_validate(version.document)
            except ValidationError as error:
                _log.error("document cannot be used", kind=version.kind, name=version.name, error=error)
                self._models[version.key] = None
        return self._models[version.key]


async def newest_rules(connection: Connection) -> int:
    """The seq of the newest apply; 0 before the first."""
    row = await fetch_one(connection, "rules.documents/read_newest_rules")
    assert row is not None
    return int(row[0])


async def applied_documents(connection: Connection, *kinds: type[BaseModel]) -> list[BaseModel]:
    """The documents of these kinds that are applied already, for checking others against them at load."""
    rows = await fetch_all(connection, "rules.documents/list_newest_documents")
    wanted = {_KIND_OF[kind]: kind for kind in kinds}
    return [
        wanted[kind].model_validate(document)
        for kind, _, _, document, holds in rows
        if kind in wanted and holds
    ]


async def known_documents(connection: Connection, *kinds: type[BaseModel]) -> list[BaseModel]:
    """Those of these kinds that are applied; without those that this version of Tocsin cannot read."""
    rows = await fetch_all(connection, "rules.documents/list_newest_documents")
    wanted = {_KIND_OF[kind] for kind in kinds}
    found = []
    for kind, _, _, document, holds in rows:
        if kind in wanted and holds:
            with suppress(ValidationError):
                found.append(KINDS[kind].model_validate(document))
    return found


async def known_names(connection: Connection) -> dict[str, frozenset[str]]:
    """Names per kind that are applied already, for checking references at load."""
    rows = await fetch_all(connection, "rules.documents/list_newest_documents")
    names: dict[str, set[str]] = {}
    for kind, name, _, _, holds in rows:
        if holds:
            names.setdefault(kind, set()).add(name)
    return {kind: frozenset(of_kind) for kind, of_kind in names.items()}
