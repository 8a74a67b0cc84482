"""Series for a person to look at: what is there, and what ought to be."""

from __future__ import annotations

import re
from typing import Any

from rules.alarms.expected_series import expectations, unseen
from rules.documents.rule_book import applied_documents
from rules.engine import TypeIndex
from schemas.documents import DatapointTypeDocument, SystemDocument
from schemas.values.key_pattern import check_pattern
from tocsin.core.db import Connection, fetch_all, fetch_dicts
from tocsin.core.errors import InvalidInput

_NEVER = dict.fromkeys(
    ("value", "ts", "labels", "arrived_at", "first_arrived_at", "stale_since", "deadline"), None
) | {"freshness": "unknown", "cause": "no-data"}
_PARTS = {"*": r"[^.]+", "**": r".+"}


async def list_series(
    connection: Connection,
    *,
    owner: str | None = None,
    key: str | None = None,
    type: str | None = None,
    stale: bool = False,
    limit: int = 100,
) -> list[dict[str, Any]]:
    """By owner and key. `key` may be a pattern."""
    types, _ = await _documents(connection)
    parameters = {
        "owner": owner,
        "key": None if key is None else _expression(key),
        "keys": None if type is None else await _keys_of_type(connection, types, type),
        "freshness": "stale" if stale else None,
        "limit": limit,
    }
    rows = await fetch_dicts(connection, "rules.alarms/list_series", parameters)
    return [{**row, "datapoint_type": _type_name(types, row["key"])} for row in rows]


async def list_unknown(
    connection: Connection,
    *,
    owner: str | None = None,
    key: str | None = None,
    type: str | None = None,
    limit: int = 100,
) -> list[dict[str, Any]]:
    """Series that a document expects and that have never been seen, by owner. `key` may be a pattern."""
    types, systems = await _documents(connection)
    if type is not None:
        _known_type(types, type)
    expression = None if key is None else re.compile(_expression(key))
    wanted = [one for one in expectations(types, systems) if owner in (None, one.owner)]
    rows = await fetch_all(
        connection, "rules.alarms/list_keys_of_owners", {"owners": sorted({one.owner for one in wanted})}
    )
    seen: dict[str, list[str]] = {}
    for of_owner, of_key in rows:
        seen.setdefault(of_owner, []).append(of_key)
    patterns = {one.name: one.key for one in types.types}
    found = []
    for one in unseen(wanted, seen, types):
        shown = one.key or patterns.get(one.type or "", "")
        of_type = one.type or _type_name(types, shown)
        if type in (None, of_type) and (expression is None or expression.search(shown)):
            found.append(
                {**_NEVER, "owner": one.owner, "key": shown, "datapoint_type": of_type, "by": one.by}
            )
    return found[:limit]


async def _documents(connection: Connection) -> tuple[TypeIndex, list[SystemDocument]]:
    models = await applied_documents(connection, DatapointTypeDocument, SystemDocument)
    types = TypeIndex(one for one in models if isinstance(one, DatapointTypeDocument))
    return types, [one for one in models if isinstance(one, SystemDocument)]


async def _keys_of_type(connection: Connection, types: TypeIndex, type: str) -> list[str]:
    _known_type(types, type)
    rows = await fetch_all(connection, "rules.alarms/list_keys")
    return [key for (key,) in rows if _type_name(types, key) == type]


def _known_type(types: TypeIndex, type: str) -> None:
    names = [one.name for one in types.types]
    if type not in names:
        known = ", ".join(sorted(names)[:10]) or "none"
        raise InvalidInput(f"there is no datapoint_type {type!r}: applied are {known}")


def _type_name(types: TypeIndex, key: str) -> str | None:
    found = types.of(key)
    return None if found is None else found.name


def _expression(pattern: str) -> str:
    try:
        check_pattern(pattern)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    parts = (_PARTS.get(part, re.escape(part)) for part in pattern.split("."))
    return "^" + r"\.".join(parts) + "$"
