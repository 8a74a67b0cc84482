"""Finds series that a document expects and that have never sent data: their freshness is `unknown`.

A document expects a series in two ways: a datapoint_type lists its owner, or a system has it as a
member. Any series of the owner that has the key, or the type, meets the expectation. This is
computed on demand: no timer is armed for a series that has never sent data, and nothing fires.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rules.engine import TypeIndex
from schemas.documents.system import SystemDocument
from schemas.values.series_key import base_key


class ExpectedSeries(NamedTuple):
    owner: str
    key: str | None
    """None if any series of the type meets the expectation."""
    type: str | None
    expected_by: str
    """The document that expects it."""

    @property
    def identity(self) -> tuple[str, str | None, str | None]:
        return self.owner, self.key, self.type


def expected_series(types: TypeIndex, systems: Iterable[SystemDocument]) -> list[ExpectedSeries]:
    """The expected series by owner, each once, even if several documents expect it."""
    expected: dict[tuple[str, str | None, str | None], ExpectedSeries] = {}
    for datapoint_type in types.types:
        for owner in datapoint_type.owners:
            name = datapoint_type.name
            series = ExpectedSeries(owner, None, name, f"datapoint_type {name}")
            expected.setdefault(series.identity, series)
    for system in systems:
        for member in system.members:
            series = ExpectedSeries(member.owner, member.key, member.type, f"system {system.name}")
            expected.setdefault(series.identity, series)
    return sorted(
        expected.values(),
        key=lambda series: (series.owner, series.key or "", series.type or "", series.expected_by),
    )


def series_without_data(
    expected: Iterable[ExpectedSeries], keys: Mapping[str, Iterable[str]], types: TypeIndex
) -> list[ExpectedSeries]:
    """The expected series for which there is no data. `keys` has the keys with data of each owner."""
    return [
        series
        for series in expected
        if not any(_meets(key, series, types) for key in keys.get(series.owner, ()))
    ]


def _meets(key: str, expected: ExpectedSeries, types: TypeIndex) -> bool:
    if expected.key is not None:
        return base_key(key) == expected.key
    datapoint_type = types.of(key)
    return datapoint_type is not None and datapoint_type.name == expected.type
