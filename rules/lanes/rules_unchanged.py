"""A batch is judged from one state of the rules: nothing was applied between its planning and its first lock.

Why it matters even where messages are judged by the rules of their own time: an apply ends alarms and forgets states. A
batch that read them before, and concluded that nothing changes, would have nothing else to notice it by.
"""

from __future__ import annotations

from rules.documents.rule_book import newest_rules
from rules.lanes.batch import Writes
from tocsin.core.db import Connection
from tocsin.core.errors import Conflict


class SameRules(Writes):
    """No rules were applied since the batch was planned; from here on its partition's lock keeps them as they are."""

    def __init__(self, rules_seq: int) -> None:
        self._rules_seq = rules_seq

    async def timers(self, connection: Connection) -> None:
        if await newest_rules(connection) != self._rules_seq:
            raise Conflict(f"rules were applied after {self._rules_seq}: the batch is planned again")
