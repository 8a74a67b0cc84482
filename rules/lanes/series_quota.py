"""The quota of series: an owner that has too many gets no new ones, and those that exist continue.

Guarantee: a transaction that would create series beyond the quota does not commit. It raises `Conflict`,
and the batch is planned again with the keys that the owner has. An owner below its quota costs nothing:
its series are counted only in a transaction that creates one.

The number of all series is the estimate of Postgres, which follows with the next analyze.

On failure: the keys of a full owner are read again after a minute, and so a series that retention
removed makes room.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from rules.lanes.quota import Quotas
from tocsin.core.db import Connection, fetch_all
from tocsin.core.errors import Conflict

_READ_AGAIN_S = 60.0
_KEPT_OWNERS = 100
_MOST_KEYS = 1_000_000


class FullOwner:
    """The keys of an owner that may get only `free` more."""

    def __init__(self, keys: set[str], free: int, quota: str, until_s: float) -> None:
        self.keys = keys
        self.free = free
        self.quota = quota
        self.until_s = until_s


class SeriesQuota:
    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._full: OrderedDict[str, str] = OrderedDict()
        """The quota that each full owner has reached: series or all_series."""
        self._owners: OrderedDict[str, FullOwner] = OrderedDict()

    @property
    def has_full_owners(self) -> bool:
        return bool(self._full)

    async def check_new(self, connection: Connection, owners: Sequence[str]) -> None:
        """Check the owners that got a series in this transaction. `Conflict` if one has too many."""
        rows = await fetch_all(connection, "rules.lanes/count_series", {"owners": list(owners)})
        full = [owner for owner, count, all_count in rows if self._reached(owner, count, all_count)]
        if full:
            raise Conflict(f"new series of {len(full)} owners exceed a quota")
        for owner in owners:
            self._owners.pop(owner, None)

    def _reached(self, owner: str, count: int, all_count: int) -> bool:
        limit = self._quotas.of(owner).series
        if limit and count > limit:
            quota = "series"
        elif self._quotas.all_series and all_count >= self._quotas.all_series:
            quota = "all_series"
        else:
            return False
        self._full[owner] = quota
        while len(self._full) > _KEPT_OWNERS:
            self._full.popitem(last=False)
        return True

    async def full_among(self, connection: Connection, owners: Iterable[str]) -> dict[str, FullOwner]:
        """Those of the owners that may not get all the series that they send, with their keys."""
        return {owner: await self._read(connection, owner) for owner in set(owners) if owner in self._full}

    async def _read(self, connection: Connection, owner: str) -> FullOwner:
        found = self._owners.get(owner)
        if found is not None and time.monotonic() < found.until_s:
            return found
        parameters = {"owner": owner, "limit": _MOST_KEYS}
        keys = {key for (key,) in await fetch_all(connection, "rules.lanes/list_series_keys", parameters)}
        quota = self._full[owner]
        free = max(0, self._quotas.of(owner).series - len(keys)) if quota == "series" else 0
        full = FullOwner(keys, free, quota, time.monotonic() + _READ_AGAIN_S)
        self._owners[owner] = full
        while len(self._owners) > _KEPT_OWNERS:
            self._owners.popitem(last=False)
        return full
