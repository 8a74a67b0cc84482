"""The transitions of a zone are exact to the second."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.timers.recurrence import oracle
from timers.recurrence.transitions import next_transition, transitions


@pytest.mark.parametrize("zone", oracle.ZONES)
def test_every_change_of_the_clocks_is_found_to_the_second(zone: str) -> None:
    counted = list(oracle.changes(zone, (2007, 2012)))
    found = [instant for year in range(2007, 2013) for instant in transitions(zone, year)]
    assert found == counted


def test_the_next_transition_is_strictly_after_and_up_to_the_end() -> None:
    spring = datetime(2026, 3, 8, 7, tzinfo=UTC)
    autumn = datetime(2026, 11, 1, 6, tzinfo=UTC)
    instant = timedelta(microseconds=1)
    assert next_transition("America/New_York", spring - instant, autumn) == spring
    assert next_transition("America/New_York", spring, autumn) == autumn
    assert next_transition("America/New_York", spring, autumn - instant) is None
    following = next_transition("America/New_York", autumn, autumn + timedelta(days=300))
    assert following == datetime(2027, 3, 14, 7, tzinfo=UTC)


def test_fixed_zones_and_the_ends_of_the_calendar_have_no_transitions() -> None:
    assert transitions("UTC", 2026) == ()
    assert transitions("America/New_York", 9999) == ()
    assert transitions("America/New_York", 1) == ()
