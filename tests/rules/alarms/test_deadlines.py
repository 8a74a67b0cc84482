"""Arrival gaps extend the deadline of a series, in Python and in SQL alike, and never without bound."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.alarms.staleness import extended_deadline
from rules.lanes.arrival_gap import ArrivalGap, record_gaps
from tests.clock.clock_setup import at
from tests.sql import one_row
from tocsin.core.db import Connection
from tocsin.core.instant import MICROSECOND

TEN_S = timedelta(seconds=10)


def gap(began: float, ended: float) -> ArrivalGap:
    return ArrivalGap(at(began), at(ended))


@pytest.mark.parametrize(
    ("gaps", "deadline"),
    [
        ([], 10),
        ([gap(-9, -3), gap(-3, 0)], 10),
        ([gap(0, 4)], 14),
        ([gap(9, 40)], 50),
        ([gap(10, 40)], 10),
        ([gap(3, 8), gap(12, 14), gap(19, 22), gap(23, 40)], 23),
        ([gap(3, 8), gap(12, 14), gap(19, 22), gap(22.5, 40)], 40.5),
        ([gap(3, 8), gap(18, 30)], 18),
    ],
    ids=[
        "without a gap",
        "gaps before the arrival do not count",
        "a gap that begins with the arrival gives the whole tolerance again",
        "so does one just before the deadline",
        "one that begins at the deadline comes too late",
        "later gaps add their length, until one begins at the deadline",
        "or as long as they begin before it",
        "the second gap begins at the extended deadline",
    ],
)
def test_the_first_gap_gives_the_whole_tolerance_and_later_ones_their_length(
    gaps: list[ArrivalGap], deadline: float
) -> None:
    assert extended_deadline(at(0), TEN_S, gaps) == at(deadline)


def test_a_gap_every_night_does_not_keep_a_series_from_becoming_stale() -> None:
    """With the whole tolerance for every gap, it would never be stale."""
    hour = timedelta(hours=1)
    nights = [ArrivalGap(at(0) + hour * (24 * day), at(0) + hour * (24 * day + 1)) for day in range(1, 60)]
    assert extended_deadline(at(0), 25 * hour, nights) == at(0) + hour * (24 + 1 + 25 + 1)


# Up to weeks, so that a change of the clocks lies in between, and down to microseconds.
SPANS = st.one_of(st.integers(1, 5), st.integers(1, 10**7), st.integers(1, 2 * 10**12))
TOLERANCE = SPANS.map(lambda us: us * MICROSECOND)


@st.composite
def partition_times(draw: st.DrawFn) -> tuple[datetime, list[ArrivalGap]]:
    """The last arrival of a series, and the gaps of its partition: before, at and after the arrival."""
    spans = draw(st.lists(SPANS, min_size=2, max_size=12))
    instants = [at(0)]
    for us in spans:
        instants.append(instants[-1] + us * MICROSECOND)
    are_gaps = draw(st.lists(st.booleans(), min_size=len(spans), max_size=len(spans)))
    gaps = [ArrivalGap(*ends) for ends, is_gap in zip(pairwise(instants), are_gaps, strict=True) if is_gap]
    return draw(st.sampled_from(instants)), gaps


@given(partition_times(), TOLERANCE)
def test_a_later_arrival_or_one_more_gap_never_makes_the_deadline_earlier(
    times: tuple[datetime, list[ArrivalGap]], tolerance: timedelta
) -> None:
    """The stored watchdog is therefore never due after the deadline."""
    arrived_at, gaps = times
    deadline = extended_deadline(arrived_at, tolerance, gaps)
    for number in range(len(gaps)):
        assert extended_deadline(arrived_at, tolerance, gaps[:number]) <= deadline
    for instant in (instant for ends in gaps for instant in ends if instant >= arrived_at):
        assert extended_deadline(instant, tolerance, gaps) >= deadline


@given(partition_times(), TOLERANCE)
def test_gaps_after_the_deadline_are_not_needed_to_know_it(
    times: tuple[datetime, list[ArrivalGap]], tolerance: timedelta
) -> None:
    """A deadline up to the watermark is final: every gap that began before it is recorded."""
    arrived_at, gaps = times
    deadline = extended_deadline(arrived_at, tolerance, gaps)
    known = [gap for gap in gaps if gap.began_at < deadline]
    assert extended_deadline(arrived_at, tolerance, known) == deadline


@given(times=partition_times(), tolerance=TOLERANCE)
async def test_the_clock_computes_the_same_deadline(
    connection: Connection, times: tuple[datetime, list[ArrivalGap]], tolerance: timedelta
) -> None:
    """In a session with daylight saving time, in which a day may have 23 hours."""
    arrived_at, gaps = times
    await connection.execute("set timezone = 'Europe/Berlin'")
    await connection.execute("truncate tocsin.arrival_gap")
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition) values ('data', 3) on conflict do nothing"
    )
    last_gap_at = gaps[-1].began_at if gaps else None
    await connection.execute("update tocsin.lane_partition set last_gap_at = %s", (last_gap_at,))
    await record_gaps(connection, 3, gaps)
    row = await one_row(
        connection,
        "select tocsin.series_deadline(p, %s, %s) as deadline from tocsin.lane_partition p where p.lane = 'data'",
        (arrived_at, tolerance // MICROSECOND),
    )
    assert row["deadline"] == extended_deadline(arrived_at, tolerance, gaps)
