"""A check that no rules were applied between the planning of a batch and its first lock.

It is needed even where messages are evaluated with the rules of their own time. An apply resolves
alarms and deletes states. A batch that read them before, and concluded that nothing changes, would
have nothing else to detect it by.
"""

from __future__ import annotations

from rules.documents.rule_book import newest_rules
from rules.lanes.batch import Writes
from tocsin.core.db import Connection
from tocsin.core.errors import Conflict


class RulesUnchanged(Writes):
    """`Conflict` if rules were applied since the batch was planned.

    From here on the lock of the partition holds them.
    """

    def __init__(self, rules_seq: int) -> None:
        self._rules_seq = rules_seq

    async def write_timers(self, connection: Connection) -> None:
        if await newest_rules(connection) != self._rules_seq:
            raise Conflict(f"rules were applied after {self._rules_seq}: the batch is planned again")
