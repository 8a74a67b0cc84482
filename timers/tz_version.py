"""The version of the tz data that computes the ticks, as the database stores it.

Guarantee: once a clock has stored its version, no edit by older data commits a tick. An edit reads
the version under a shared lock that it holds until it commits; the clock stores a version under the
exclusive one. Two settings are stored: `tz-version`, the data of the leading clock, and
`tz-ticks-version`, with which every pending tick has been computed.

On failure: an edit by older data is `Refused` with both versions.
"""

from __future__ import annotations

from timers.recurrence.zones import tz_version
from tocsin.core.db import Connection, fetch_value
from tocsin.core.errors import Refused


async def refuse_older_tz_data(connection: Connection, schedule: str) -> None:
    """Refuse to compute a tick with older tz data than the clock has."""
    own, stored = tz_version(), await fetch_value(connection, "timers/share_tz_version")
    if stored is not None and release(own) < release(stored):
        raise Refused(
            f"schedule {schedule!r} depends on a timezone, and the tz data of this process ({own}) is older than "
            f"that of the clock ({stored})",
            remedy="install the tzdata package of the clock here, or use UTC",
        )


def release(version: str) -> tuple[str, int, str]:
    """A version such as `2026f` in an order: by year, then by letter."""
    return version[:4], len(version), version
