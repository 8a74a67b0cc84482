"""Reads series for operators: those that have data, and those that are expected and have none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rules.alarms.expected_series import ExpectedSeries, expected_series, series_without_data
from rules.documents.rule_book import RuleSet, applied_documents
from rules.engine import TypeIndex
from schemas.documents import DatapointTypeDocument, SystemDocument
from schemas.values.key_pattern import check_pattern
from tocsin.core.db import Connection, fetch_all, fetch_dicts
from tocsin.core.errors import InvalidInput

_EMPTY_ROW = {
    "value": None,
    "ts": None,
    "labels": None,
    "arrived_at": None,
    "first_arrived_at": None,
    "stale_since": None,
    "deadline": None,
    "freshness": "unknown",
    "cause": "no-data",
}
_WILDCARDS = {"*": r"[^.]+", "**": r".+"}


async def list_series(
    connection: Connection,
    *,
    owner: str | None = None,
    key: str | None = None,
    type: str | None = None,
    stale: bool = False,
    owners: Sequence[str] | None = None,
    after: tuple[str | None, str | None] = (None, None),
    limit: int = 100,
) -> list[dict[str, Any]]:
    """The series that have data, by owner and key. `key` may be a pattern.

    With `owners`, only of these patterns; with `after`, only behind this owner and key.
    """
    types, _ = await _read_documents(connection)
    parameters = {
        "owner": owner,
        "key": None if key is None else _key_regex(key),
        "keys": None if type is None else await _keys_of_type(connection, types, type),
        "freshness": "stale" if stale else None,
        "owners": None if owners is None else list(owners),
        "after_owner": after[0],
        "after_key": after[1],
        "limit": limit,
    }
    rows = await fetch_dicts(connection, "rules.alarms/list_series", parameters)
    return [{**row, "datapoint_type": _type_name(types, row["key"])} for row in rows]


async def list_series_without_data(
    connection: Connection,
    *,
    owner: str | None = None,
    key: str | None = None,
    type: str | None = None,
    limit: int = 100,
) -> list[dict[str, Any]]:
    """The series that a document expects and that have no data, by owner.

    `key` may be a pattern.
    """
    types, systems = await _read_documents(connection)
    if type is not None:
        _check_type(types, type)
    expression = None if key is None else re.compile(_key_regex(key))
    expected = [
        series for series in expected_series(types, systems) if owner is None or owner == series.owner
    ]
    keys = await _read_keys(connection, {series.owner for series in expected})
    rows = [_row_without_data(series, types) for series in series_without_data(expected, keys, types)]
    matching = [
        row
        for row in rows
        if (type is None or type == row["datapoint_type"])
        and (expression is None or expression.search(row["key"]))
    ]
    return matching[:limit]


def _row_without_data(series: ExpectedSeries, types: TypeIndex) -> dict[str, Any]:
    patterns = {type.name: type.key for type in types.types}
    key = series.key or patterns.get(series.type or "", "")
    type = series.type or _type_name(types, key)
    return {**_EMPTY_ROW, "owner": series.owner, "key": key, "datapoint_type": type, "by": series.expected_by}


async def _read_documents(connection: Connection) -> tuple[TypeIndex, list[SystemDocument]]:
    documents = RuleSet(await applied_documents(connection, DatapointTypeDocument, SystemDocument))
    types = TypeIndex(documents.of(DatapointTypeDocument).values())
    return types, list(documents.of(SystemDocument).values())


async def _read_keys(connection: Connection, owners: set[str]) -> dict[str, list[str]]:
    rows = await fetch_all(connection, "rules.alarms/list_keys_of_owners", {"owners": sorted(owners)})
    keys: dict[str, list[str]] = {}
    for owner, key in rows:
        keys.setdefault(owner, []).append(key)
    return keys


async def _keys_of_type(connection: Connection, types: TypeIndex, type: str) -> list[str]:
    _check_type(types, type)
    rows = await fetch_all(connection, "rules.alarms/list_keys")
    return [key for (key,) in rows if _type_name(types, key) == type]


def _check_type(types: TypeIndex, name: str) -> None:
    names = [type.name for type in types.types]
    if name not in names:
        applied = ", ".join(sorted(names)[:10]) or "none"
        raise InvalidInput(f"there is no datapoint_type {name!r}", remedy=f"the applied ones are {applied}")


def _type_name(types: TypeIndex, key: str) -> str | None:
    type = types.of(key)
    return None if type is None else type.name


def _key_regex(pattern: str) -> str:
    try:
        check_pattern(pattern)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    parts = (_WILDCARDS.get(part, re.escape(part)) for part in pattern.split("."))
    return "^" + r"\.".join(parts) + r"(\{.*)?$"
