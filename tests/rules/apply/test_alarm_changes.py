"""The effect of an apply on open and pending alarms: each is kept, evaluated again, or ended with a reason."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from clock.term import begin_term
from rules.apply import ApplyResult, apply, preview
from rules.documents.load import load_text
from rules.engine import WentStale
from tests.clock.clock_setup import drain
from tests.records import events
from tests.rules.apply.apply_setup import ACTOR, T0, action, put, rule
from tests.rules.lanes.arrivals import (
    KEY,
    PLANT,
    alarm,
    alarms,
    arrive,
    assert_nothing_is_orphaned,
    emit,
    evaluate,
    hot,
    make_partition,
    minute,
    rules_in_force,
    timers,
)
from tests.sessions import Sessions
from tests.sql import all_rows, blocked
from tests.wait import eventually
from timers.working_set import arm
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import Refused

FOR = "  for: 10m\n"
CLEARING = "  keep_firing_for: 10m\n"


@pytest.fixture(autouse=True)
async def _at_the_beginning(connection: Connection) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (T0.isoformat(),))


def at_minute(number: float) -> Actor:
    return replace(ACTOR, now=minute(number))


async def only(connection: Connection, text: str, actor: Actor = ACTOR) -> ApplyResult:
    """Apply these documents and remove all others."""
    loaded = load_text(text, anchor=T0)
    seen = await preview(connection, loaded, actor.now, prune=True)
    applied = await apply(connection, loaded, actor, removing=seen.plan.removed)
    await assert_nothing_is_orphaned(connection)
    resolved = [end for end in seen.alarms if end.outcome == "resolved"]
    assert len(resolved) == applied.resolved, "the plan showed another number"
    return applied


async def event_reasons(connection: Connection) -> list[tuple[str, datetime, Any]]:
    return [
        (event["type"], event["ts"], event["payload"].get("reason")) for event in await events(connection)
    ]


async def test_an_open_alarm_of_a_removed_rule_is_resolved_with_the_reason(connection: Connection) -> None:
    await put(connection, hot() + action("tell"))
    await arrive(connection, minute(1), 70)
    await arm(connection, "for-sustain", str((await alarm(connection))["id"]), "snooze", minute(60))
    applied = await only(connection, action("tell"), at_minute(2))
    row = await alarm(connection)
    assert (row["state"], row["resolved_at"], row["resolved_reason"]) == (
        "resolved",
        minute(2),
        "rule-removed",
    )
    assert applied.resolved == 1
    assert await timers(connection) == []
    resolved = (await events(connection))[-2]
    assert (resolved["type"], resolved["origin"], resolved["ts"]) == ("alarm-resolved", "derived", minute(2))
    assert (resolved["rule"], resolved["owner"], resolved["alarm_id"]) == ("hot", PLANT, row["id"])
    assert (resolved["correlation_id"], resolved["severity"]) == (row["correlation_id"], row["severity"])
    assert (resolved["payload"]["value"], resolved["payload"]["reason"]) == (70, "rule-removed")
    assert "the rule was removed" in resolved["payload"]["message"]


async def test_the_rules_that_saw_the_opening_also_see_the_end(connection: Connection) -> None:
    """The event comes before `rules-applied`: the rule that sent the notification also sends the end."""
    await put(connection, hot() + action("tell") + rule("page", "tell", 'rule == "hot"'))
    await arrive(connection, minute(1), 70)
    applied = await only(connection, action("other"))
    resolved, last = (await events(connection))[-2:]
    assert (resolved["type"], last["type"]) == ("alarm-resolved", "rules-applied")
    assert (resolved["seq"] + 1, last["seq"]) == (applied.seq, applied.seq)
    (version,) = await all_rows(connection, "select until_seq from tocsin.rule_version where name = 'page'")
    assert version["until_seq"] == applied.seq


async def test_a_pending_alarm_of_a_removed_rule_is_deleted(connection: Connection) -> None:
    await put(connection, hot(extra=FOR) + action("tell"))
    await arrive(connection, minute(1), 70)
    assert await timers(connection) == [("for-sustain", "open")]
    await only(connection, action("tell"))
    assert (await alarms(connection), await timers(connection)) == ([], [])
    assert [event["type"] for event in await events(connection)] == ["rules-applied"] * 2


async def test_a_disabled_rule_ends_its_alarms_and_starts_again_when_it_is_enabled(
    connection: Connection,
) -> None:
    await put(connection, hot())
    await arrive(connection, minute(1), 70)
    await only(connection, hot(extra="  enabled: false\n"), at_minute(2))
    assert await alarms(connection) == [("hot", "resolved", "rule-disabled")]
    await only(connection, hot(), at_minute(3))
    await arrive(connection, minute(4), 70)
    assert await alarms(connection) == [("hot", "resolved", "rule-disabled"), ("hot", "open", None)]


async def test_a_renamed_rule_ends_under_its_old_name_and_begins_under_its_new_one(
    connection: Connection,
) -> None:
    await put(connection, hot())
    await arrive(connection, minute(1), 70)
    await only(connection, hot(name="hotter"), at_minute(2))
    await arrive(connection, minute(3), 71)
    await arrive(connection, minute(4), 72)
    assert await alarms(connection) == [("hot", "resolved", "rule-removed"), ("hotter", "open", None)]
    await assert_nothing_is_orphaned(connection)


async def test_a_document_of_another_kind_with_the_same_name_is_another_document(
    connection: Connection,
) -> None:
    await put(connection, hot())
    await arrive(connection, minute(1), 70)
    await only(connection, action("hot"))
    assert await alarms(connection) == [("hot", "resolved", "rule-removed")]


async def test_without_prune_documents_that_the_files_leave_out_stay(connection: Connection) -> None:
    await put(connection, hot())
    await arrive(connection, minute(1), 70)
    await put(connection, action("hot"))
    assert await alarms(connection) == [("hot", "open", None)]
    await assert_nothing_is_orphaned(connection)


@pytest.mark.parametrize("other", ["  severity: high\n", "  description: why\n", "  message: hm\n"])
async def test_a_change_of_neither_condition_nor_timing_keeps_a_sustain(
    connection: Connection, other: str
) -> None:
    await put(connection, hot(extra=FOR))
    await arrive(connection, minute(1), 70)
    before = await all_rows(connection, "select * from tocsin.timer")
    await only(connection, hot(extra=FOR + other), at_minute(5))
    assert await all_rows(connection, "select * from tocsin.timer") == before
    await make_partition(connection, "data", minute(30))
    await drain(await begin_term(connection, "test"), minute(30))
    assert (await alarm(connection))["opened_at"] == minute(11)


async def test_a_pending_alarm_of_a_changed_rule_is_evaluated_again(connection: Connection) -> None:
    await put(connection, hot(extra=FOR))
    await arrive(connection, minute(1), 70)
    await only(connection, hot("value > 80.0", FOR), at_minute(5))
    assert (await alarms(connection), await timers(connection)) == ([], [])
    await arrive(connection, minute(6), 70)
    assert await alarms(connection) == []
    await arrive(connection, minute(7), 90)
    assert (await alarm(connection))["since"] == minute(7)
    await assert_nothing_is_orphaned(connection)


async def test_an_open_alarm_of_a_changed_rule_is_kept_until_the_new_rule_clears_it(
    connection: Connection,
) -> None:
    await put(connection, hot(extra=CLEARING))
    await arrive(connection, minute(1), 70)
    await arrive(connection, minute(2), 60)
    assert await timers(connection) == [("for-sustain", "clear")]
    await only(connection, hot("value > 50.0"), at_minute(3))
    # It was clearing by the condition that was replaced.
    assert (await alarms(connection), await timers(connection)) == ([("hot", "open", None)], [])
    await arrive(connection, minute(4), 60)
    assert await alarms(connection) == [("hot", "open", None)]
    await arrive(connection, minute(5), 40)
    assert await alarms(connection) == [("hot", "resolved", "cleared")]
    await assert_nothing_is_orphaned(connection)


async def test_an_alarm_that_the_rule_no_longer_covers_is_resolved(connection: Connection) -> None:
    """No input would ever resolve it."""
    await put(connection, hot())
    await arrive(connection, minute(1), 70)
    await only(connection, hot(over="datapoint: dsp.pressure"), at_minute(2))
    assert await alarms(connection) == [("hot", "resolved", "rule-changed")]


@pytest.mark.parametrize("to_events", [True, False])
async def test_a_rule_that_changes_its_lane_starts_over(connection: Connection, to_events: bool) -> None:
    over_events = hot('type == "down"', over='event: "*"')
    await put(connection, hot() if to_events else over_events)
    if to_events:
        await arrive(connection, minute(1), 70)
    else:
        await emit(connection, minute(1), "down")
    assert await alarms(connection) == [("hot", "open", None)]
    await only(connection, over_events if to_events else hot(), at_minute(2))
    assert await alarms(connection) == [("hot", "resolved", "rule-changed")]
    assert await all_rows(connection, "select * from tocsin.rule_state") == []


async def test_a_passed_deadline_is_handled_before_the_rule_ends(connection: Connection) -> None:
    """The clock was late: in time, the alarm would have been open for a minute."""
    await put(connection, hot(extra=FOR) + action("tell"))
    await arrive(connection, minute(1), 70)
    await make_partition(connection, "data", minute(12))
    await only(connection, action("tell"), at_minute(12))
    row = await alarm(connection)
    assert (row["opened_at"], row["resolved_at"], row["state"]) == (minute(11), minute(12), "resolved")
    assert (await event_reasons(connection))[1:] == [
        ("alarm-opened", minute(11), None),
        ("alarm-resolved", minute(12), "rule-removed"),
        ("rules-applied", minute(12), None),
    ]


async def test_a_deadline_after_the_watermark_is_not_handled(connection: Connection) -> None:
    """A datapoint that clears the condition may wait in the stream."""
    await put(connection, hot(extra=FOR) + action("tell"))
    await arrive(connection, minute(1), 70)
    await make_partition(connection, "data", minute(10))
    await only(connection, action("tell"), at_minute(12))
    assert await alarms(connection) == []


async def test_a_passed_clearing_deadline_resolves_by_the_rule_and_not_by_the_apply(
    connection: Connection,
) -> None:
    await put(connection, hot(extra=CLEARING) + action("tell"))
    await arrive(connection, minute(1), 70)
    await arrive(connection, minute(2), 60)
    await make_partition(connection, "data", minute(15))
    await only(connection, action("tell"), at_minute(15))
    row = await alarm(connection)
    assert (row["resolved_at"], row["resolved_reason"]) == (minute(12), "cleared")


async def test_no_alarm_ends_before_it_opened_even_if_clocks_differ(connection: Connection) -> None:
    await put(connection, hot() + action("tell"))
    await arrive(connection, minute(10), 70)
    await only(connection, action("tell"), at_minute(2))
    row = await alarm(connection)
    assert (row["opened_at"], row["resolved_at"]) == (minute(10), minute(10))


async def test_the_alarm_of_a_type_without_on_stale_alarm_is_resolved(connection: Connection) -> None:
    kind = f"---\ndatapoint_type:\n  name: temperature\n  key: {KEY}\n  interval: 1m\n"
    await put(connection, kind + "  on_stale: alarm\n")
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, watermark) values ('data', 0, %s)",
        (minute(9),),
    )
    await _make_stale(connection)
    assert await alarms(connection) == [("stale:temperature", "open", None)]
    await only(connection, kind, at_minute(9))
    assert await alarms(connection) == [("stale:temperature", "resolved", "rule-removed")]


async def _make_stale(connection: Connection) -> None:
    rules = (await rules_in_force(connection)).for_key(KEY)
    await evaluate(connection, rules, WentStale(minute(5), PLANT, KEY, minute(2), 1.0, minute(2), {}), "data")


async def test_a_type_that_would_break_a_rule_is_rejected(connection: Connection) -> None:
    await put(connection, hot())
    text = f"---\ndatapoint_type:\n  name: temperature\n  key: {KEY}\n  value: string\n"
    with pytest.raises(Refused, match="event_rule 'hot', which is applied already, would not hold any more"):
        await put(connection, text)
    await put(connection, text + hot('value == "hot"'))


async def test_states_without_an_alarm_are_not_read(connection: Connection) -> None:
    await put(connection, hot() + action("tell"))
    await make_partition(connection)
    await connection.execute(
        "insert into tocsin.rule_state (event_rule, owner, lane, partition)"
        " select 'hot', 'o' || n, 'data', 0 from generate_series(1, 5000) n"
    )
    await only(connection, action("tell"))
    assert await all_rows(connection, "select * from tocsin.rule_state") == []


async def test_when_the_clock_is_faster_the_alarm_opens_and_is_then_resolved(
    connection: Connection, watch: Connection, sessions: Sessions
) -> None:
    await put(connection, hot(extra=FOR) + action("tell"))
    await arrive(connection, minute(1), 70)
    clock, applier = await sessions("clock"), await sessions("apply")
    (before,) = await all_rows(connection, "select id from tocsin.alarm")
    async with clock.transaction():
        # The transaction of the clock, stopped before its commit.
        await clock.execute("delete from tocsin.timer where kind = 'for-sustain'")
        loaded = load_text(action("tell"), anchor=T0)
        removing = frozenset({("event_rule", "hot")})
        applying = asyncio.create_task(apply(applier, loaded, at_minute(12), removing=removing))
        await eventually(lambda: blocked(watch, applier), "the apply waits for the clock")
        await clock.execute(
            "update tocsin.rule_state set phase = 'open', version = version + 1, state = state ||"
            " jsonb_build_object('phase', 'open', 'last_opened_at', state -> 'due_at', 'due_at', null)"
        )
        await clock.execute("update tocsin.alarm set state = 'open', opened_at = %s", (minute(11),))
    assert (await applying).resolved == 1
    row = await alarm(connection)
    assert (row["id"], row["state"], row["resolved_at"]) == (before["id"], "resolved", minute(12))
    await assert_nothing_is_orphaned(connection)


async def test_when_the_apply_is_faster_the_clock_finds_nothing(connection: Connection) -> None:
    await put(connection, hot(extra=FOR) + action("tell"))
    await arrive(connection, minute(1), 70)
    await only(connection, action("tell"), at_minute(2))
    await make_partition(connection, "data", minute(30))
    await drain(await begin_term(connection, "test"), minute(30))
    assert await alarms(connection) == []
    assert "alarm-opened" not in [event["type"] for event in await events(connection)]
