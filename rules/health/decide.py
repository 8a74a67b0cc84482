"""Decides health: processes observations of members in the order of their instants.

Guarantee: an observation is processed once every partition has been read up to its instant and
nothing about a member is left to fire or to be processed before it. So health does not depend on
which partition was read first, nor on how late any process was. Each change is one calculated
datapoint, in the transaction that stores the new health. While a partition lags, health waits: it
is never corrected afterwards.

Any number of workers try, and one at a time decides. On failure nothing was decided, and the worker
tries again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from rules.documents.compiled_rules import CompiledRuleSet, compiled_rule_book
from rules.documents.rule_book import newest_rules
from rules.health.store import health_datapoint, read_health, read_observations, write_health
from rules.health.systems import HealthChange, observe_in_order
from tocsin.core.db import Connection, fetch_value, open_service_session, retrying
from tocsin.core.record_log import append_records
from tocsin.core.records import NewRecords
from tocsin.core.service import beat
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOCK_TIMEOUT

_EVERY_S = 0.1
_CHUNK = 500


class HealthDecider:
    """A task of a worker. `chunk`: the number of observations in one transaction."""

    def __init__(self, settings: Settings, chunk: int = _CHUNK) -> None:
        self._settings = settings
        self._chunk = chunk
        self._book = compiled_rule_book()

    async def run(self) -> None:
        async with open_service_session(self._settings, "worker health") as connection:
            while True:
                beat("health")
                # A process that keeps the log locked for longer than we wait only delays us.
                with suppress(LOCK_TIMEOUT):
                    await retrying(lambda: self.decide(connection))
                await asyncio.sleep(_EVERY_S)

    async def decide(self, connection: Connection) -> list[HealthChange]:
        """Process the observations that are decided by now, one chunk per transaction.

        Postgres ends a session that idles in a transaction for long. For the same reason the rules
        are compiled before the transaction.
        """
        changes: list[HealthChange] = []
        while await fetch_value(connection, "rules.health/has_observations"):
            # An apply leaves no observations behind, so all of them belong to its documents.
            seq = await newest_rules(connection) + 1
            await self._book.refresh(connection, seq)
            rules = self._book.at(seq)
            async with connection.transaction():
                count, changes_of_chunk = await self._process(connection, seq, rules)
            changes += changes_of_chunk
            if count < self._chunk:
                break
            beat("health")
        return changes

    async def _process(
        self, connection: Connection, seq: int, rules: CompiledRuleSet
    ) -> tuple[int, list[HealthChange]]:
        """Process one chunk; returns the number of observations, and the changes."""
        if not await fetch_value(connection, "rules.health/try_lock_health"):
            return 0, []
        if await newest_rules(connection) + 1 != seq:
            return 0, []
        # The watermark first: observations up to it are then complete in the table.
        until = await fetch_value(connection, "rules.health/read_watermark")
        stored = [] if until is None else await read_observations(connection, until, self._chunk)
        if not stored:
            return 0, []
        observations = [observation for _, observation in stored]
        health = await read_health(
            connection,
            lambda owner, key: rules.members.of_series(owner, key, rules),
            sorted({observation.owner for observation in observations}),
        )
        changes = observe_in_order(health.systems, observations, health.holds_from)
        await write_health(connection, health, stored, changes)
        datapoints = [health_datapoint(change) for change in changes]
        await append_records(connection, NewRecords(calculated=datapoints))
        return len(stored), changes
