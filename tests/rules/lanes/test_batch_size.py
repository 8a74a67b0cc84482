"""The size of batches follows their duration and their failures."""

from __future__ import annotations

from rules.lanes.batch_size import _PATIENCE, BatchSize


def test_batches_grow_while_they_are_fast_and_shrink_when_one_is_slow() -> None:
    size = BatchSize()
    first = size.max_bytes
    for _ in range(20):
        size.succeeded(busy_s=0.01, slice_s=0.1)
    most = size.max_bytes
    # Neither fast nor slow: unchanged.
    size.succeeded(busy_s=0.05, slice_s=0.1)
    assert size.max_bytes == most > first
    size.succeeded(busy_s=0.11, slice_s=0.1)
    assert size.max_bytes == most // 2
    for _ in range(20):
        size.succeeded(busy_s=0.11, slice_s=0.1)
    assert 0 < size.max_bytes < first / 4


def test_a_failed_batch_is_halved_and_its_old_size_is_tried_again_after_many_successes() -> None:
    size = BatchSize()
    first = size.max_bytes
    size.failed()
    for _ in range(_PATIENCE - 1):
        size.succeeded(busy_s=0.01, slice_s=0.1)
        assert size.max_bytes == first // 2
    size.succeeded(busy_s=0.01, slice_s=0.1)
    assert size.max_bytes == first
    for _ in range(20):
        size.failed()
    assert 0 < size.max_bytes < first / 4
