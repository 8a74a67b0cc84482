"""The clock plans again for a table that has grown, although nothing analyzed it."""

from __future__ import annotations

import re

from clock.kept_plans import MAX_AGE_S, KeptPlans
from tests.sql import all_rows
from tocsin.core.db import Connection

_ARM = (
    "insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, generation)"
    " select 'for-sustain', gen_random_uuid()::text, '', now(), now(), 1 from generate_series(1, %s)"
)


async def _estimated_rows(connection: Connection) -> int:
    """The size of the table that the kept plan was made for."""
    (row, *_) = await all_rows(connection, "explain execute kept")
    match = re.search(r"rows=(\d+)", row["QUERY PLAN"])
    assert match is not None
    return int(match.group(1))


async def test_plans_are_made_again_once_they_are_old(connection: Connection) -> None:
    await connection.execute("set plan_cache_mode = force_generic_plan")
    await connection.execute(_ARM, (5,))
    await connection.execute("analyze tocsin.timer")
    await connection.execute("prepare kept as select * from tocsin.timer")
    plans = KeptPlans(connection, now_s=100.0)
    assert await _estimated_rows(connection) == 5
    await connection.execute(_ARM, (10_000,))
    await plans.refresh(now_s=100.0 + MAX_AGE_S - 0.1)
    assert await _estimated_rows(connection) == 5
    await plans.refresh(now_s=100.0 + MAX_AGE_S)
    assert await _estimated_rows(connection) > 1_000
