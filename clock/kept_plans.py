"""The query plans that the clock's session keeps.

The clock keeps generic plans, because planning takes longer than firing a few timers. A plan is
made for the sizes that the tables have at that moment, and Postgres makes it again only after
ANALYZE. For an empty table it joins without an index, which is slow once the table has grown.
`KeptPlans` therefore discards the plans every few seconds. The sessions of the other services keep
no plans (`tocsin.core.db`).
"""

from __future__ import annotations

from tocsin.core.db import Connection, statement

MAX_AGE_S = 5.0


class KeptPlans:
    def __init__(self, connection: Connection, now_s: float) -> None:
        self._connection = connection
        self._made_s = now_s

    async def refresh(self, now_s: float) -> None:
        """Discard the plans if they are old. `now_s` is the steady clock of the process."""
        if now_s - self._made_s >= MAX_AGE_S:
            await self._connection.execute(statement("clock/discard_plans"))
            self._made_s = now_s
