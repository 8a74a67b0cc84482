"""The oracle of the chaos account: alarms from arrivals, and the order of numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.faults.chaos.account import expected_alarms, inversions
from tests.faults.chaos.load import HOT, HOT_KEY

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


def arrivals(owner: str, *values: tuple[float, bool]) -> list[tuple[str, str, int, datetime]]:
    return [(owner, HOT_KEY, HOT if is_hot else 0, T0 + timedelta(seconds=at_s)) for at_s, is_hot in values]


def opened_s(*values: tuple[float, bool]) -> list[float]:
    return sorted((at - T0).total_seconds() for _, at in expected_alarms(arrivals("a", *values)))


@pytest.mark.parametrize(
    ("values", "opened"),
    [
        ([(0, True), (1, True), (3, True)], [2.0]),
        ([(0, True), (1, False)], []),
        ([(0, True), (5, False)], [2.0]),
        ([(0, True), (2, False)], []),
        ([(0, True), (2, True)], [2.0]),
        ([(0, True), (3, False), (4, True), (7, False)], [2.0, 6.0]),
        ([(0, True)], [2.0]),
    ],
)
def test_an_alarm_opens_when_its_condition_has_held_until_the_deadline(
    values: list[tuple[float, bool]], opened: list[float]
) -> None:
    assert opened_s(*values) == opened


def test_owners_have_alarms_of_their_own() -> None:
    rows = [*arrivals("a", (0, True), (3, True)), *arrivals("b", (1, True), (4, True))]
    opened = {(owner, (at - T0).total_seconds()) for owner, at in expected_alarms(rows)}
    assert opened == {("a", 2.0), ("b", 3.0)}


def test_a_smaller_number_after_a_larger_one_is_out_of_order_and_a_repeated_one_is_not() -> None:
    assert [inversions(numbers) for numbers in ([1, 2, 2, 3], [1, 3, 2, 4], [])] == [0, 1, 0]
