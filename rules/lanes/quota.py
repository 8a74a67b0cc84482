"""Quotas: how much one owner may send.

Guarantee: what an owner sends beyond its quota of a minute is rejected, and no other owner is affected.
Minutes are those of the arrival in the stream, so a worker that is late rejects the same messages as
one that is not. A quota of series rejects new series only; those that exist continue. Nothing that was
rejected is stored, so a replay of a recording has the same inputs.

Rejections are bounded too: the first message of an owner and a minute becomes a dead letter, and the
others are counted. The next dead letter of the owner has their number. One event `quota-exceeded` is
recorded per owner, quota and hour.

Pure: no I/O. What a batch used is kept only after its commit (`Usage.keep`), because a batch may be
planned several times.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from tocsin.core.quota_text import NO_LIMIT, OwnerQuota, QuotaPatterns
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

QUOTA_EXCEEDED = "quota-exceeded"
_KEPT_OWNERS = 20_000
_MINUTE_S = 60
_HOUR_S = 3_600


class Exceeded(NamedTuple):
    """A rejection: why, and whether it becomes a dead letter."""

    quota: str
    reason: str
    is_first: bool


@dataclass(slots=True)
class OwnerUsage:
    """What an owner sent in one minute. A batch changes its own copy."""

    minute: int = -1
    events: int = 0
    datapoints: int = 0
    bytes: int = 0
    dropped: int = 0
    """Messages that were rejected without a dead letter since the last one."""
    is_over: str = ""
    """The quota that is exceeded in this minute."""


class Quotas:
    """The quotas of all owners."""

    def __init__(self, settings: Settings) -> None:
        default = OwnerQuota(
            series=settings.quota_series,
            datapoints=settings.quota_datapoints,
            bytes=settings.quota_bytes,
            events=settings.quota_events,
        )
        self.all_series = settings.quota_all_series
        self._patterns = QuotaPatterns.parse(settings.quotas, default)

    def of(self, owner: str) -> OwnerQuota:
        return self._patterns.of(owner)


class Usage:
    """What owners have sent, in memory. At most 20,000 owners, those that sent last."""

    def __init__(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self._owners: OrderedDict[str, OwnerUsage] = OrderedDict()
        self._reported: OrderedDict[tuple[str, str], int] = OrderedDict()

    def batch(self) -> BatchUsage:
        return BatchUsage(self)

    def owner(self, owner: str) -> OwnerUsage:
        return self._owners.get(owner, _NO_USAGE)

    def is_reported(self, owner: str, quota: str, hour: int) -> bool:
        return self._reported.get((owner, quota)) == hour

    def keep(self, owners: dict[str, OwnerUsage], reported: Iterable[tuple[str, str, int]]) -> None:
        for owner, usage in owners.items():
            self._owners[owner] = usage
            self._owners.move_to_end(owner)
        while len(self._owners) > _KEPT_OWNERS:
            self._owners.popitem(last=False)
        for owner, quota, hour in reported:
            self._reported[owner, quota] = hour
            self._reported.move_to_end((owner, quota))
        while len(self._reported) > _KEPT_OWNERS:
            self._reported.popitem(last=False)


_NO_USAGE = OwnerUsage()


@dataclass
class BatchUsage:
    """What the messages of one batch use, on top of what was kept before."""

    before: Usage
    owners: dict[str, OwnerUsage] = field(default_factory=dict)
    events: list[NewEvent] = field(default_factory=list)
    rejected: dict[str, int] = field(default_factory=dict)
    """Rejected messages by quota."""
    _reported: dict[tuple[str, str], int] = field(default_factory=dict)

    def add_message(self, owner: str, at: datetime, size: int) -> Exceeded | None:
        """Count a message of datapoints. The reason if the owner has sent too much in this minute."""
        usage = self._in_minute(owner, at)
        if usage.is_over:
            return self._exceeded(owner, usage, usage.is_over, at)
        usage.bytes += size
        if usage.bytes > (self.before.quotas.of(owner).bytes or NO_LIMIT):
            return self._exceeded(owner, usage, "bytes", at)
        return None

    def add_datapoints(self, owner: str, at: datetime, count: int) -> Exceeded | None:
        """Count the datapoints of a message that was added."""
        usage = self._in_minute(owner, at)
        usage.datapoints += count
        if usage.datapoints > (self.before.quotas.of(owner).datapoints or NO_LIMIT):
            return self._exceeded(owner, usage, "datapoints", at)
        return None

    def add_event(self, owner: str, at: datetime) -> Exceeded | None:
        usage = self._in_minute(owner, at)
        usage.events += 1
        if usage.events > (self.before.quotas.of(owner).events or NO_LIMIT):
            return self._exceeded(owner, usage, "events", at)
        return None

    def refuse_series(self, owner: str, at: datetime, quota: str = "series") -> None:
        """Report that an owner has too many series; the caller has the reason."""
        self.rejected[quota] = self.rejected.get(quota, 0) + 1
        self._report(owner, quota, at)

    def keep(self) -> None:
        """After the commit of the batch."""
        self.before.keep(self.owners, [(*key, hour) for key, hour in self._reported.items()])

    def _in_minute(self, owner: str, at: datetime) -> OwnerUsage:
        minute = int(at.timestamp()) // _MINUTE_S
        usage = self.owners.get(owner)
        if usage is None:
            usage = self.owners[owner] = replace(self.before.owner(owner))
        if usage.minute != minute:
            usage = self.owners[owner] = OwnerUsage(minute, dropped=usage.dropped)
        return usage

    def _exceeded(self, owner: str, usage: OwnerUsage, quota: str, at: datetime) -> Exceeded:
        is_first, dropped_before = not usage.is_over, usage.dropped
        usage.is_over = quota
        usage.dropped = 0 if is_first else usage.dropped + 1
        self.rejected[quota] = self.rejected.get(quota, 0) + 1
        self._report(owner, quota, at)
        limit = getattr(self.before.quotas.of(owner), quota)
        before = f"; {dropped_before:,} messages before it were dropped" if dropped_before else ""
        reason = (
            f"the owner {owner[:128]!r} sent more than {limit:,} {quota} within a minute, and what follows in that "
            f"minute is dropped{before}: send less, or raise TOCSIN_QUOTA_{quota.upper()} or TOCSIN_QUOTAS"
        )
        return Exceeded(quota, reason, is_first)

    def _report(self, owner: str, quota: str, at: datetime) -> None:
        hour = int(at.timestamp()) // _HOUR_S
        if self._reported.get((owner, quota)) == hour or self.before.is_reported(owner, quota, hour):
            return
        self._reported[owner, quota] = hour
        limit = (
            self.before.quotas.all_series
            if quota == "all_series"
            else getattr(self.before.quotas.of(owner), quota)
        )
        payload = {"quota": quota, "limit": limit}
        self.events.append(
            NewEvent(ts=at, origin="caused", type=QUOTA_EXCEEDED, owner=owner, payload=payload)
        )
