"""The rows of a simulated digest have the columns of the live queries."""

from __future__ import annotations

import pytest

from rules.replay.digest_rows import alarm_rows, dead_run_rows, event_rows, stale_rows
from tests.rules.replay.rule_tests.worlds import minutes, simulate
from tocsin.core.db import Connection, statement

RULES = """
datapoint_type: {name: t, key: t, interval: 1m}
---
event_rule: {name: hot, datapoint: t, above: 5}
---
action_rule: {name: page, on: alarm, action: call}
---
action: {name: call, emit: {type: noted, owner: "{{ payload.nothing }}"}}
"""


@pytest.mark.parametrize(
    "query", ["list_digest_alarms", "list_new_events", "list_stale_series", "list_dead_runs"]
)
async def test_a_simulated_row_has_the_columns_of_the_live_query(connection: Connection, query: str) -> None:
    world = simulate(RULES)
    world.arrive("o", "t", 9)
    world.run_until(minutes(5))
    rows = {
        "list_digest_alarms": alarm_rows(world.alarms, world.start, world.now),
        "list_new_events": event_rows(world._events, 0, 99),
        "list_stale_series": stale_rows(world._alarms.stale_series()),
        "list_dead_runs": dead_run_rows(world.log, minutes(-1)),
    }[query]
    cursor = await connection.execute(
        statement(f"rules.actions/{query}"),
        {"limit": 5, "after_seq": 0, "until_seq": 9, "since": world.start},
    )
    assert cursor.description is not None
    columns = {column.name for column in cursor.description}
    # Events become facts, which derive `manual`.
    derived = {"manual"} if query == "list_new_events" else set()
    assert rows[0].keys() - derived == columns
