"""The records that one connection receives: those that its query selects and its grants allow."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.api.live.query import Query
from tocsin.api.live.record import LiveRecord
from tocsin.policy import Grant, Principal, decide


@dataclass(frozen=True)
class Selection:
    """Equal for all connections with the same grants and query, so that each record is compared once."""

    grants: tuple[Grant, ...]
    query: Query

    def selects(self, record: LiveRecord) -> bool:
        return self._is_allowed(record) and self.query.selects(record)

    def _is_allowed(self, record: LiveRecord) -> bool:
        return decide(Principal("live", self.grants), record.operation, record.owner).allowed
