"""`/editor/history`: what was changed in a document, when and by whom? An older version can be edited again."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from rules.documents.applied import check_kind, list_versions
from rules.documents.yaml_text import document_text
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.core.errors import NotFound
from tocsin.policy import Operation

MOST_VERSIONS = 50
_MOST_LINES = 2_000


class DiffLine(NamedTuple):
    sign: str
    """`+`, `-` or a space."""
    text: str


async def show_history(visit: Visit) -> Response:
    kind, name = visit.query("kind"), visit.query("name")
    check_kind(kind)
    rows = await list_versions(visit.connection, kind, name, limit=MOST_VERSIONS + 1)
    if not rows:
        raise NotFound(f"there is no {kind} {name!r}", remedy="`tocsin rules` lists the documents in force")
    versions = [
        {**newer, "diff": list(_diff(kind, older, newer))}
        for newer, older in pairwise([*rows, None])
        if newer
    ]
    return visit.page(
        "pages/rule_history.html",
        {
            "kind": kind,
            "name": name,
            "versions": versions[:MOST_VERSIONS],
            "is_cut": len(rows) > MOST_VERSIONS,
        },
    )


def _diff(kind: str, older: dict[str, Any] | None, newer: dict[str, Any]) -> Iterator[DiffLine]:
    before = _lines(kind, older)
    after = _lines(kind, newer)
    for line in difflib.ndiff(before, after):
        if not line.startswith("?"):
            yield DiffLine(line[0], line[2:])


def _lines(kind: str, row: dict[str, Any] | None) -> Sequence[str]:
    if row is None:
        return []
    return document_text(kind, row["document"]).splitlines()[:_MOST_LINES]


ROUTES = (
    # A channel may have an address with a token in it: its text is for authors.
    Route("/editor/history", console_page(Operation.PLAN_RULES, show_history), methods=["GET"]),
)
