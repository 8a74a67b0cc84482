"""`/records`: what happens? The events of the log, with tokens to select them, and the lineage of one cause."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from tocsin.api.live.query import parse_query
from tocsin.console.commands import command_line
from tocsin.console.page import console_page
from tocsin.console.records_text import EventLine, event_line, event_lines
from tocsin.console.visit import ROWS, Visit
from tocsin.core.db import fetch_dicts
from tocsin.core.errors import InvalidInput, NotFound
from tocsin.policy import Operation

_FILTERS = ("owner", "type", "rule", "schedule", "origin")
_SEARCHED = 100_000
_MOST_OF_CAUSE = 200


class LineageNode(NamedTuple):
    line: EventLine
    depth: int
    payload: Mapping[str, Any]


async def show_records(visit: Visit) -> Response:
    chosen = {name: visit.query(name) for name in _FILTERS}
    before = _before(visit.query("before"))
    parameters = {
        "owners": visit.access.owners,
        "before": before,
        "within": _SEARCHED,
        "limit": ROWS + 1,
        **{name: text or None for name, text in chosen.items()},
    }
    rows = await fetch_dicts(visit.connection, "tocsin.console/list_events", parameters)
    query = " ".join(f'{name}:"{text}"' for name, text in chosen.items() if text and '"' not in text)
    parse_query(query)
    options = [
        word
        for name in ("owner", "type", "rule", "schedule")
        if chosen[name]
        for word in (f"--{name}", chosen[name])
    ]
    facts = {
        "events": event_lines(rows[:ROWS]),
        "correlations": {row["seq"]: row["correlation_id"] for row in rows},
        "older": rows[ROWS - 1]["seq"] if len(rows) > ROWS else None,
        "chosen": chosen,
        "is_narrowed": any(chosen.values()),
        "live_query": query or "kind:event",
        "is_live": before is None,
        "searched": _SEARCHED,
        "command": command_line("events", *options),
    }
    return visit.page("pages/records.html", facts)


def _before(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidInput(f"before is {text[:40]!r}", remedy="write the seq of a record")
    return int(text)


async def show_lineage(visit: Visit) -> Response:
    id = visit.path_id("correlation")
    parameters = {"owners": visit.access.owners, "id": id, "limit": _MOST_OF_CAUSE, "within": _SEARCHED}
    rows = await fetch_dicts(visit.connection, "tocsin.console/list_lineage", parameters)
    if not rows:
        raise NotFound(f"there is no record of the cause '{id}' among the last {_SEARCHED:,}")
    facts = {"id": id, "nodes": lineage(rows), "is_cut": len(rows) == _MOST_OF_CAUSE}
    return visit.page("pages/lineage.html", facts)


def lineage(rows: Sequence[Mapping[str, Any]]) -> list[LineageNode]:
    """Events below the one that led to them; the first cause first."""
    ids = {row["id"] for row in rows}
    children: dict[uuid.UUID | None, list[Mapping[str, Any]]] = {}
    for row in rows:
        parent = row["source_event_id"]
        # The seq of a cause is smaller, so no event is below itself.
        children.setdefault(parent if parent in ids and parent != row["id"] else None, []).append(row)
    found: list[LineageNode] = []
    waiting = [(row, 0) for row in reversed(children.get(None, []))]
    while waiting:
        row, depth = waiting.pop()
        found.append(LineageNode(event_line(row), depth, row["payload"]))
        waiting += [(child, min(depth + 1, 8)) for child in reversed(children.pop(row["id"], []))]
    return found


ROUTES = (
    Route("/records", console_page(Operation.VIEW_EVENTS, show_records), methods=["GET"]),
    Route("/lineage/{id}", console_page(Operation.VIEW_EVENTS, show_lineage), methods=["GET"]),
)
