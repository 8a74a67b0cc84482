"""Batches are as large as they are cheap."""

from __future__ import annotations

from rules.lanes.batch_size import Pace


def test_batches_grow_while_they_are_quick_and_shrink_when_one_is_slow() -> None:
    pace = Pace()
    first = pace.batch_bytes
    for _ in range(20):
        pace.settled(0.01, 0.1)
    most = pace.batch_bytes
    pace.settled(0.05, 0.1)
    assert pace.batch_bytes == most > first
    pace.settled(0.11, 0.1)
    assert pace.batch_bytes == most // 2
    for _ in range(20):
        pace.settled(0.11, 0.1)
    assert 0 < pace.batch_bytes < first / 4


def test_a_batch_that_failed_is_tried_again_by_half_and_its_size_only_after_many_that_went_well() -> None:
    pace = Pace()
    first = pace.batch_bytes
    pace.failed()
    for _ in range(99):
        pace.settled(0.01, 0.1)
        assert pace.batch_bytes == first // 2
    pace.settled(0.01, 0.1)
    assert pace.batch_bytes == first
    for _ in range(20):
        pace.failed()
    assert 0 < pace.batch_bytes < first / 4
