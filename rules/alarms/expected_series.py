"""Series that a document expects and that have never sent data: their freshness is `unknown`. Pure.

Guarantee: an expectation is an owner of a datapoint_type, or a member of a system. Any series of
the owner that has the key, or the type, meets it. This is computed on demand: no timer is armed for
a series that has never sent data, and nothing fires.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rules.engine import TypeIndex
from schemas.documents.system import SystemDocument


class ExpectedSeries(NamedTuple):
    owner: str
    key: str | None
    """None: any series of the type."""
    type: str | None
    by: str
    """The document that expects it."""


def expected_series(types: TypeIndex, systems: Iterable[SystemDocument]) -> list[ExpectedSeries]:
    """The expected series by owner, each once, even if several documents expect it."""
    expected: dict[tuple[str, str | None, str | None], ExpectedSeries] = {}
    for type in types.types:
        for owner in type.owners:
            series = ExpectedSeries(owner, None, type.name, f"datapoint_type {type.name}")
            expected.setdefault(series[:3], series)
    for system in systems:
        for member in system.members:
            series = ExpectedSeries(member.owner, member.key, member.type, f"system {system.name}")
            expected.setdefault(series[:3], series)
    return sorted(
        expected.values(), key=lambda series: (series.owner, series.key or "", series.type or "", series.by)
    )


def series_without_data(
    expected: Iterable[ExpectedSeries], keys: Mapping[str, Iterable[str]], types: TypeIndex
) -> list[ExpectedSeries]:
    """The expected series that no series meets. `keys`: by owner, the keys that have data."""
    return [
        series
        for series in expected
        if not any(_meets(key, series, types) for key in keys.get(series.owner, ()))
    ]


def _meets(key: str, expected: ExpectedSeries, types: TypeIndex) -> bool:
    if expected.key is not None:
        return key == expected.key
    type = types.of(key)
    return type is not None and type.name == expected.type
