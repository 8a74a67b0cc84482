"""The backoff, and the options that are rejected."""

from __future__ import annotations

from typing import Any

import pytest

from tocsin.client import Delivery, InvalidInput


def test_the_pause_doubles_up_to_the_longest() -> None:
    delivery = Delivery(back_off_s=0.5, longest_back_off_s=3)
    assert [delivery.pause_s(attempt) for attempt in (1, 2, 3, 4, 5, 10_000)] == [0.5, 1, 2, 3, 3, 3]


def test_in_order_means_one_at_a_time_over_all_processes() -> None:
    assert Delivery().most_pending == 1
    assert Delivery(concurrency=2).most_pending >= 1000
    assert Delivery(concurrency=1000).most_pending >= 10_000


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"concurrency": 0}, "concurrency=0 is out of range: give a whole number from 1 to 1000"),
        ({"concurrency": True}, "concurrency=True"),
        ({"concurrency": 2.0}, "concurrency=2.0"),
        ({"batch": 0}, "batch=0"),
        ({"batch": 5001}, "batch=5001 is out of range: give a whole number from 1 to 5000"),
        ({"attempts": 0}, "attempts=0"),
        ({"attempts": 1001}, "attempts=1001"),
        ({"back_off_s": -1}, "back_off_s=-1 is out of range: give seconds from 0 to 86400"),
        ({"longest_back_off_s": "5m"}, "longest_back_off_s='5m'"),
        ({"ack_wait_s": 0.5}, "ack_wait_s=0.5 is out of range: give seconds from 1 to 86400"),
        ({"timeout_s": 0}, "timeout_s=0"),
        ({"drain_s": float("nan")}, "drain_s=nan"),
        ({"when_dead": "retry"}, "when_dead='retry' does not exist: use 'skip' or 'stop'"),
    ],
)
def test_a_number_out_of_range_is_rejected_by_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Delivery(**values)
