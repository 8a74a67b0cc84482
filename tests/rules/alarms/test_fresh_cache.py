"""The cache of fresh series is right until the next deadline, and emptied when rules change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rules.alarms.fresh_cache import FreshCache
from rules.alarms.staleness import StoredSeries
from rules.engine import TypeIndex
from schemas.documents.datapoint_type import DatapointTypeDocument

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
STALE_AFTER = timedelta(seconds=75)
TYPES = TypeIndex(
    [DatapointTypeDocument.model_validate({"name": "t", "key": "watched", "interval": timedelta(seconds=30)})]
)
SERIES = {("plant", "watched"), ("plant", "unwatched")}


def stored(key: str = "watched", **changed: Any) -> StoredSeries:
    series = StoredSeries("plant", key, T0, 1, T0, {}, None, None, STALE_AFTER, T0 + STALE_AFTER)
    return series._replace(**changed)


def test_a_watched_series_is_fresh_until_just_before_its_watchdog_is_due() -> None:
    cache = FreshCache()
    fresh = cache.for_rules(1, TYPES)
    assert fresh.fresh_until(SERIES, T0) == set()
    fresh.remember([stored()])
    assert cache.for_rules(1, TYPES).fresh_until(SERIES, T0 + STALE_AFTER - timedelta(microseconds=1)) == {
        ("plant", "watched")
    }
    assert fresh.fresh_until(SERIES, T0 + STALE_AFTER) == set()


def test_a_series_that_no_type_watches_is_always_fresh() -> None:
    fresh = FreshCache().for_rules(1, TYPES)
    fresh.remember([stored("unwatched", stale_after=None, nominal_at=None)])
    assert fresh.fresh_until(SERIES, T0 + timedelta(days=3650)) == {("plant", "unwatched")}


@pytest.mark.parametrize(
    "changed",
    [
        {"stale_since": T0},
        {"stale_after": None, "nominal_at": None},
        {"stale_after": STALE_AFTER * 2},
    ],
    ids=["stale", "not armed", "armed with another duration"],
)
def test_a_series_that_must_be_read_is_not_cached(changed: dict[str, Any]) -> None:
    fresh = FreshCache().for_rules(1, TYPES)
    fresh.remember([stored(**changed)])
    assert fresh.fresh_until(SERIES, T0) == set()


def test_an_apply_empties_the_cache_and_older_batches_add_nothing() -> None:
    cache = FreshCache()
    old = cache.for_rules(1, TYPES)
    old.remember([stored()])
    new = cache.for_rules(2, TYPES)
    assert new.fresh_until(SERIES, T0) == set()
    old.remember([stored()])
    assert cache.for_rules(2, TYPES).fresh_until(SERIES, T0) == set()


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rules.alarms.fresh_cache._MAX_SERIES", 10)
    cache = FreshCache()
    for number in range(100):
        cache.for_rules(1, TYPES).remember(
            [stored("unwatched", owner=str(number), stale_after=None, nominal_at=None)]
        )
        assert len(cache._due_at) <= 11
