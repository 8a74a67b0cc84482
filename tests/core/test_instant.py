"""Instants as text and as microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.errors import InvalidInput
from tocsin.core.instant import (
    check_aware,
    instant_of,
    instant_text,
    microseconds_of,
    parse_instant,
    utc_text,
)

AT = datetime(2026, 3, 10, 15, 0, tzinfo=timezone(timedelta(hours=1)))


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_survives_as_microseconds_and_as_text(instant: datetime) -> None:
    assert instant_of(microseconds_of(instant)) == instant
    assert parse_instant(instant_text(instant)) == instant


def test_an_instant_is_written_in_utc() -> None:
    assert instant_text(AT) == "2026-03-10T14:00:00Z"
    assert instant_text(AT + timedelta(microseconds=5)) == "2026-03-10T14:00:00.000005Z"
    assert utc_text(AT) == "2026-03-10 14:00:00 UTC"


def test_nanoseconds_are_cut_to_microseconds() -> None:
    assert parse_instant("2026-03-10T15:00:00.123456789+01:00") == datetime(
        2026, 3, 10, 14, 0, 0, 123456, tzinfo=UTC
    )


def test_an_instant_without_a_timezone_is_rejected() -> None:
    check_aware(AT, "ts")
    with pytest.raises(
        InvalidInput, match=r"^ts 2026-03-02T00:00:00 has no timezone: give an aware datetime$"
    ):
        check_aware(datetime(2026, 3, 2), "ts")
