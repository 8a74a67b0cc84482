"""Timezones from one source: the tzdata wheel that is installed with this process.

Guarantee: a zone behaves the same on every host, because the files of the host are never read. The
version of the data is known (`tz_version`), and a running process never changes it.

Why: zoneinfo prefers the files of the system. Hosts with different packages then fire at different
times; fifteen zones differ between two releases one year apart. `TZDIR` points the expression
engine, which has its own reader, to the same files.

On failure: an unknown key is `InvalidInput` with the nearest known key.
"""

import difflib
import os
import zoneinfo
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from zoneinfo import ZoneInfo

from tocsin.core.errors import InvalidInput

# Both must happen before the first zone is loaded: ZoneInfo caches what it has read.
zoneinfo.reset_tzpath(to=())
ZoneInfo.clear_cache()
os.environ["TZDIR"] = str(files("tzdata") / "zoneinfo")

# Abbreviations that people write. They name an offset of half a year, or several places.
_ABBREVIATIONS = {
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
    "MDT": "America/Denver",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "EDT": "America/New_York",
    "BST": "Europe/London",
    "CEST": "Europe/Paris",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "AEST": "Australia/Sydney",
}


def tz_version() -> str:
    """The IANA release of the data in use, such as `2026f`."""
    return str(import_module("tzdata").IANA_VERSION)


@lru_cache(maxsize=1)
def zone_keys() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() - {"localtime", "Factory"})


@lru_cache(maxsize=1024)
def zone(key: str) -> ZoneInfo:
    if key not in zone_keys():
        raise InvalidInput(f"unknown timezone {key[:64]!r}", remedy=_hint(key[:64]))
    return ZoneInfo(key)


def _hint(key: str) -> str:
    if key.upper() in _ABBREVIATIONS:
        return f"abbreviations are ambiguous, did you mean '{_ABBREVIATIONS[key.upper()]}'?"
    by_lower = {known.lower(): known for known in zone_keys()}
    near = difflib.get_close_matches(key.lower().replace(" ", "_"), by_lower, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{by_lower[near[0]]}'?"
    return "use an IANA name such as 'Europe/London', 'America/New_York' or 'UTC'"
