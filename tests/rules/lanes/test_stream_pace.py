"""A stream is slow while canaries come and are not acknowledged in time."""

from __future__ import annotations

import pytest

from rules.lanes.stream_pace import StreamPace


def key(number: int) -> tuple[str, int]:
    return "data", number


def late_pace(*numbers: int) -> StreamPace:
    """Late canaries of these partitions at second 100; one was read at second 99."""
    pace = StreamPace()
    pace.canary_read(99.0)
    for number in numbers:
        pace.canary_late(key(number), 100.0)
    return pace


@pytest.mark.parametrize(("now_s", "is_slow"), [(100.0, True), (109.9, True), (110.0, False)])
def test_a_partition_is_slow_for_a_while_after_a_late_canary(now_s: float, is_slow: bool) -> None:
    assert late_pace(0).is_slow(key(0), now_s) is is_slow


def test_a_partition_whose_canaries_do_not_come_is_not_slow() -> None:
    """The worker may lack the right to publish, and series must become stale then."""
    pace = StreamPace()
    pace.canary_late(key(0), 100.0)
    assert not pace.is_slow(key(0), 100.0)
    pace.canary_read(40.5)
    assert pace.is_slow(key(0), 100.0)
    assert not pace.is_slow(key(0), 100.5)


@pytest.mark.parametrize(
    ("late", "in_time", "is_slow"),
    [((0,), (), False), ((0, 1), (2, 3), False), ((0, 1, 2), (2, 4), True), ((0, 1), (), True)],
)
def test_all_partitions_are_slow_if_most_are(
    late: tuple[int, ...], in_time: tuple[int, ...], is_slow: bool
) -> None:
    pace = late_pace(*late)
    for number in in_time:
        pace.canary_in_time(key(number), 99.5)
    assert pace.is_slow(key(9), 100.0) is is_slow
