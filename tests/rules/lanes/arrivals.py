"""Evaluates datapoints and events with the rules that hold, and stores the results as a worker does.

Also the invariants that hold after every apply: `assert_nothing_is_orphaned`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from rules.alarms.batch_writes import AlarmBatch, read_states, state_key
from rules.documents.compiled_rules import CompiledRuleSet, compiled_rule_book
from rules.documents.rule_book import newest_rules
from rules.engine import Arrival, EventSeen, Input, Rule
from rules.lanes.batch import PhasedPlan
from tests.rules.apply.apply_setup import T0
from tests.sql import all_rows, one_row
from tocsin.core.db import Connection

PLANT = "plant-7"
KEY = "dsp.temperature"


def hot(
    fire: str = "value > 65.0", extra: str = "", name: str = "hot", over: str = f"datapoint: {KEY}"
) -> str:
    return f"---\nevent_rule:\n  name: {name}\n  {over}\n  fire: '{fire}'\n{extra}"


def minute(number: float) -> datetime:
    return T0 + timedelta(minutes=number)


async def make_partition(
    connection: Connection, lane: str = "data", complete: datetime | None = None
) -> None:
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, watermark) values (%s, 0, %s)"
        " on conflict (lane, partition) do update set watermark = excluded.watermark",
        (lane, complete),
    )


async def rules_in_force(connection: Connection) -> CompiledRuleSet:
    book = compiled_rule_book()
    seq = await newest_rules(connection) + 1
    await book.refresh(connection, seq)
    return book.at(seq)


async def arrive(
    connection: Connection, at: datetime, value: float, key: str = KEY, owner: str = PLANT
) -> None:
    """A datapoint arrives, and the watermark of its partition moves to its arrival."""
    await make_partition(connection, "data", at)
    rules = (await rules_in_force(connection)).for_key(key)
    await evaluate(connection, rules, Arrival(at, 1, owner, key, value, at, {}), "data")


async def emit(connection: Connection, at: datetime, type: str, owner: str = PLANT) -> None:
    await make_partition(connection, "record", at)
    facts = {"id": "11111111-0000-4000-8000-000000000001", "type": type, "owner": owner, "origin": "external"}
    rules = (await rules_in_force(connection)).for_event(type)
    await evaluate(connection, rules, EventSeen(at, facts), "record")


async def evaluate(connection: Connection, rules: Sequence[Rule], input: Input, lane: str) -> None:
    subjects = [state_key(rule, input) for rule in rules]
    batch = AlarmBatch(lane, 0, await read_states(connection, subjects))
    for rule in rules:
        batch.apply_input(rule, input)
    async with connection.transaction():
        await PhasedPlan([batch]).write(connection)


async def alarms(connection: Connection) -> list[tuple[str, str, str | None]]:
    """(rule, state, reason of the resolution), oldest first."""
    rows = await all_rows(connection, "select * from tocsin.alarm order by since, event_rule, owner")
    return [(row["event_rule"], row["state"], row["resolved_reason"]) for row in rows]


async def alarm(connection: Connection) -> dict[str, Any]:
    return await one_row(connection, "select * from tocsin.alarm")


async def timers(connection: Connection) -> list[tuple[str, str]]:
    rows = await all_rows(connection, "select kind, key from tocsin.timer order by kind, ref, key")
    return [(row["kind"], row["key"]) for row in rows]


_ORPHANS = {
    "an alarm that no rule evaluates": """
        select a.event_rule, a.owner from tocsin.alarm a
        where a.state in ('pending', 'open') and not exists (
            select from tocsin.rule_state s
            where s.alarm_id = a.id and s.event_rule = a.event_rule and s.instance = a.instance)""",
    "a state without its rule": """
        select s.event_rule, s.owner from tocsin.rule_state s
        where not exists (
            select from tocsin.rule_version v
            where v.until_seq is null and (v.document ->> 'enabled') is distinct from 'false'
              and (v.kind = 'event_rule' and v.name = s.event_rule
                   or v.kind = 'datapoint_type' and 'stale:' || v.name = s.event_rule))""",
    "a state without its alarm": """
        select s.event_rule, s.phase from tocsin.rule_state s
        left join tocsin.alarm a on a.id = s.alarm_id
        where case s.phase when 'ok' then s.alarm_id is not null
              when 'pending' then a.state is distinct from 'pending' else a.state is distinct from 'open' end""",
    "a state that contradicts itself": """
        select s.event_rule, s.phase, s.state from tocsin.rule_state s
        where coalesce(s.state ->> 'phase', 'ok') <> s.phase
           or (s.state #>> '{alarm,id}') is distinct from s.alarm_id::text""",
    "a sustain without its alarm": """
        select t.ref, t.key from tocsin.timer t left join tocsin.alarm a on a.id::text = t.ref
        where t.kind = 'for-sustain'
          and a.state is distinct from case t.key when 'open' then 'pending' else 'open' end""",
    "a pending alarm without its sustain": """
        select a.event_rule from tocsin.alarm a
        where a.state = 'pending' and not exists (
            select from tocsin.timer t where t.kind = 'for-sustain' and t.ref = a.id::text and t.key = 'open')""",
    "a wait without its action": """
        select t.ref, t.key from tocsin.timer t left join tocsin.action a on a.id::text = t.ref
        where t.kind = 'runbook-wait' and coalesce(a.state, '') not in ('gathering', 'queued', 'running')""",
    "an action that has not begun, of a rule that is gone": """
        select a.action_rule, a.state from tocsin.action a
        where a.state in ('gathering', 'queued') and not exists (
            select from tocsin.rule_version v
            where v.kind = 'action_rule' and v.name = a.action_rule and v.until_seq is null)""",
    "a tick without its schedule": """
        select t.ref from tocsin.timer t left join tocsin.schedule s on s.id::text = t.ref
        where t.kind = 'schedule-tick' and s.status is distinct from 'active'""",
    "a schedule of rules without its document": """
        select s.owner, s.name from tocsin.schedule s
        where s.source = 'rules' and s.status in ('active', 'paused') and not exists (
            select from tocsin.rule_version v
            where v.kind = 'schedule' and v.name = s.name and v.until_seq is null
              and v.document ->> 'owner' = s.owner)""",
    "two events of one transition": """
        select e.id from tocsin.event e group by e.id having count(*) > 1""",
}


async def assert_nothing_is_orphaned(connection: Connection) -> None:
    for what, query in _ORPHANS.items():
        assert await all_rows(connection, query) == [], what
