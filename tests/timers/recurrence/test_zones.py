"""Timezones come from the tzdata wheel, never from the host."""

import os
import zoneinfo
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

from timers.recurrence.zones import tz_version, zone, zone_keys
from tocsin.core.errors import InvalidInput


def test_zones_come_from_the_wheel_and_never_from_the_host() -> None:
    assert zoneinfo.TZPATH == ()
    assert Path(os.environ["TZDIR"], "America", "New_York").is_file()
    wheel = find_spec("tzdata")
    assert wheel is not None
    assert wheel.origin is not None
    assert Path(os.environ["TZDIR"]) == Path(wheel.origin).parent / "zoneinfo"


def test_the_version_of_the_data_is_known() -> None:
    assert tz_version()[:4].isdigit()
    assert tz_version()[4:].isalpha()


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("Europe/Lodnon", "did you mean 'Europe/London'"),
        ("america/new york", "did you mean 'America/New_York'"),
        ("europe/london", "did you mean 'Europe/London'"),
        ("PST", "America/Los_Angeles"),
        ("localtime", "did you mean|use an IANA name"),
        ("Factory", "did you mean|use an IANA name"),
        ("posix/Europe/London", "unknown timezone"),
        ("../../etc/passwd", "unknown timezone"),
        ("UTC\0", "unknown timezone"),
        ("", "use an IANA name"),
        ("x" * 1_000_000, "use an IANA name"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_known_one(key: str, hint: str) -> None:
    with pytest.raises(InvalidInput, match=hint) as refused:
        zone(key)
    assert len(str(refused.value)) < 300


def test_known_zones_load() -> None:
    assert {"UTC", "America/New_York", "Etc/GMT+5"} <= zone_keys()
    assert str(datetime(2026, 7, 1, tzinfo=zone("Europe/London")).utcoffset()) == "1:00:00"
