"""What is remembered about a series is right until its deadline, and forgotten with the rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rules.alarms.fresh_cache import CalmSeries
from rules.alarms.staleness import StoredSeries
from rules.engine import TypeIndex
from schemas.documents.datapoint_type import DatapointTypeDocument

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
WITHIN = timedelta(seconds=75)
TYPES = TypeIndex(
    [DatapointTypeDocument.model_validate({"name": "t", "key": "watched", "interval": timedelta(seconds=30)})]
)
SERIES = {("plant", "watched"), ("plant", "free")}


def stored(key: str = "watched", **changed: Any) -> StoredSeries:
    one = StoredSeries("plant", key, T0, 1, T0, {}, None, None, WITHIN, T0 + WITHIN)
    return one._replace(**changed)


def test_a_watched_series_is_calm_until_just_before_its_watchdog_is_due() -> None:
    memory = CalmSeries()
    calm = memory.under(1, TYPES)
    assert calm.up_to(SERIES, T0) == set()
    calm.learn([stored()])
    assert memory.under(1, TYPES).up_to(SERIES, T0 + WITHIN - timedelta(microseconds=1)) == {
        ("plant", "watched")
    }
    assert calm.up_to(SERIES, T0 + WITHIN) == set()


def test_a_series_that_no_type_watches_is_calm_for_ever() -> None:
    calm = CalmSeries().under(1, TYPES)
    calm.learn([stored("free", within=None, nominal_at=None)])
    assert calm.up_to(SERIES, T0 + timedelta(days=3650)) == {("plant", "free")}


@pytest.mark.parametrize(
    "changed",
    [
        {"stale_since": T0},
        {"within": None, "nominal_at": None},
        {"within": WITHIN * 2},
    ],
    ids=["stale", "not armed", "armed with another tolerance"],
)
def test_a_series_that_needs_something_is_not_calm(changed: dict[str, Any]) -> None:
    calm = CalmSeries().under(1, TYPES)
    calm.learn([stored(**changed)])
    assert calm.up_to(SERIES, T0) == set()


def test_an_apply_makes_everything_uncertain_and_old_batches_teach_nothing_new() -> None:
    memory = CalmSeries()
    old = memory.under(1, TYPES)
    old.learn([stored()])
    new = memory.under(2, TYPES)
    assert new.up_to(SERIES, T0) == set()
    old.learn([stored()])
    assert memory.under(2, TYPES).up_to(SERIES, T0) == set()


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rules.alarms.fresh_cache._MOST", 10)
    memory = CalmSeries()
    for number in range(100):
        memory.under(1, TYPES).learn([stored("free", owner=str(number), within=None, nominal_at=None)])
        assert len(memory._due_at) <= 11
