"""An instance in virtual time with workers that calculate windows, and die while they do."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

import psycopg

from rules.calc.evaluator import CalcEvaluator
from rules.engine import Arrival
from tests.clock.clock_setup import at
from tests.killable_session import KillableSession
from tests.rules.replay.backtest.recorded_instance import RecordedInstance
from tests.sql import all_rows
from tocsin.core.db import Connection

Result = tuple[float, str, str, Any]


class CalcInstance(RecordedInstance):
    """Two workers that calculate, a few windows per transaction."""

    _calculators: list[Connection]

    async def begin(self) -> None:
        await super().begin()
        self._calculators = [await self._session(f"calc {number}") for number in range(2)]
        self._evaluators = [CalcEvaluator(self._settings, windows=3, points=4) for _ in range(2)]

    def point(
        self, seconds: float, value: Any, key: str, owner: str = "a", age: float = 0, **labels: str
    ) -> Arrival:
        """A datapoint whose `ts` is older than its arrival by `age`."""
        return self.arrival(seconds, value, key, owner, **labels)._replace(ts=at(seconds - age))

    async def calculate(self, number: int = 0) -> int:
        return await self._evaluators[number].calculate(self._calculators[number])

    async def calculate_at_once(self) -> None:
        """Both workers calculate at the same time."""
        await asyncio.gather(self.calculate(0), self.calculate(1))

    async def die_calculating(self, statements: int, number: int = 0) -> bool:
        """Kill a worker at a statement; true if it died before it had calculated everything."""
        session = self._calculators[number]
        killable = KillableSession(session, self._watch, statements)
        with suppress(psycopg.OperationalError):
            await self._evaluators[number].calculate(cast(Connection, killable))
        await session.close()
        self._calculators[number] = await self._session(f"calc {number}")
        return killable.is_dead

    async def results(self) -> list[Result]:
        """The results in the order of the log: seconds, owner, key and value."""
        rows = await all_rows(
            self._watch, "select * from tocsin.datapoint_calculated where kind = 'calc' order by seq"
        )
        return [
            ((row["ts"] - at(0)).total_seconds(), row["owner"], row["key"], row["payload"]["value"])
            for row in rows
        ]
