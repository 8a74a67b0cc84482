"""The window keeps the newest records without a hole, bounded by number and bytes."""

from __future__ import annotations

import pytest

from tests.api.live.records import live_record
from tocsin.api.live.recent_records import RecentRecords


def filled(count: int, max_records: int = 100, max_bytes: int = 10**6) -> RecentRecords:
    window = RecentRecords(10, max_records, max_bytes)
    for seq in range(11, 11 + count):
        window.append(seq, None if seq == 13 else live_record(seq))
    return window


def test_an_empty_window_begins_after_its_last_record() -> None:
    window = filled(0)
    assert (window.first, window.last, window.after(10)) == (11, 10, (10, []))


def test_records_after_a_position_come_in_order_without_foreign_messages() -> None:
    reached, records = filled(5).after(11)
    assert (reached, [record.seq for record in records]) == (15, [12, 14, 15])


def test_a_part_of_the_records_reaches_as_far_as_it_was_read() -> None:
    reached, records = filled(5).after(11, at_most=2)
    assert (reached, [record.seq for record in records]) == (13, [12])


def test_a_position_in_the_future_has_no_records_yet() -> None:
    assert filled(5).after(99) == (99, [])


def test_the_oldest_records_leave_when_there_are_too_many() -> None:
    assert filled(10, max_records=4).first == 17


def test_the_oldest_records_leave_when_they_are_too_large_but_never_the_newest() -> None:
    window = filled(10, max_bytes=1)
    assert (window.first, window.last) == (20, 20)


def test_a_record_that_left_cannot_be_skipped_unnoticed() -> None:
    with pytest.raises(ValueError, match="no longer in memory"):
        filled(10, max_records=4).after(12)


def test_a_hole_is_rejected() -> None:
    with pytest.raises(ValueError, match="cannot follow"):
        filled(1).append(13, None)
