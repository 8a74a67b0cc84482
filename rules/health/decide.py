"""Health, decided: facts about members are taken in the order of their instants, as soon as nothing earlier can come.

Guarantee: a fact is taken when every partition has been read up to its instant and nothing of a member is left to
fire or to be heard before it. So health is the same whichever partition was read first and however late anybody was,
and each change of it is one calculated datapoint, in the transaction that moves where systems stand. While a partition
lags behind, health waits: it never says what it would have to take back.

Any number of workers try; one at a time decides. On failure nothing was decided, and it is tried again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from rules.documents.compiled_rules import CompiledRuleSet, compiled_rule_book
from rules.documents.rule_book import newest_rules
from rules.health.store import calculated, read_facts, read_standing, write_standing
from rules.health.systems import HealthChange, take
from tocsin.core.db import Connection, open_session, retrying, statement
from tocsin.core.record_log import append_records
from tocsin.core.records import NewRecords
from tocsin.core.service import beat
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOCK_TIMEOUT

_EVERY_S = 0.1
_AT_ONCE = 500


class HealthDecider:
    """What a worker does beside its lanes; `at_once`: how many facts in one transaction."""

    def __init__(self, settings: Settings, at_once: int = _AT_ONCE) -> None:
        self._settings = settings
        self._at_once = at_once
        self._book = compiled_rule_book()

    async def run(self) -> None:
        async with open_session(self._settings, "worker health") as connection:
            while True:
                beat("health")
                # Another transaction that holds the log for longer than we wait makes this later, and no more.
                with suppress(LOCK_TIMEOUT):
                    await retrying(lambda: self.decide(connection))
                await asyncio.sleep(_EVERY_S)

    async def decide(self, connection: Connection) -> list[HealthChange]:
        """What is decided by now, a page of facts at a time: a session that is idle for long inside of a transaction is
        ended, and the rules are compiled before one for the same reason."""
        told: list[HealthChange] = []
        while await _one(connection, statement("rules.health/has_facts")):
            # An apply leaves no facts behind, so all of them are of its documents.
            seq = await newest_rules(connection) + 1
            await self._book.refresh(connection, seq)
            page = self._book.at(seq)
            async with connection.transaction():
                count, changes = await self._take(connection, seq, page)
            told += changes
            if count < self._at_once:
                break
            beat("health")
        return told

    async def _take(
        self, connection: Connection, seq: int, page: CompiledRuleSet
    ) -> tuple[int, list[HealthChange]]:
        """How many facts were taken, and what they changed."""
        if not await _one(connection, statement("rules.health/try_health")):
            return 0, []
        if await newest_rules(connection) + 1 != seq:
            return 0, []
        # In this order: whatever is decided up to an instant has its facts in the table.
        until = await _one(connection, statement("rules.health/read_decided"))
        waiting = await read_facts(connection, until, self._at_once) if until is not None else []
        if not waiting:
            return 0, []
        standing = await read_standing(
            connection,
            lambda owner, key: page.members.of_series(owner, key, page),
            sorted({fact.owner for _, fact in waiting}),
        )
        changes = take(standing.systems, (fact for _, fact in waiting), standing.holds_from)
        await write_standing(connection, standing, waiting, changes)
        await append_records(connection, NewRecords(calculated=[calculated(one) for one in changes]))
        return len(waiting), changes


async def _one(connection: Connection, query: bytes) -> Any:
    row = await (await connection.execute(query)).fetchone()
    return None if row is None else row[0]
