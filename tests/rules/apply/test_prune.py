"""Removed, renamed and re-typed documents: schedules end, unstarted runs are cancelled, running ones finish."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest

from rules.apply import ApplyResult, apply, preview
from rules.apply.actions import RunImpact
from rules.documents.load import RulesInvalid, load_text
from tests.records import events
from tests.rules.apply.apply_setup import (
    ACTOR,
    T0,
    action,
    actions,
    apply_only,
    begin,
    event_bodies,
    note,
    put,
    rows,
    rule,
    schedule,
)
from tests.rules.dispatch.dispatch_setup import dispatch
from tests.rules.lanes.arrivals import assert_nothing_is_orphaned, timers
from tests.sessions import Sessions
from tests.sql import all_rows, blocked, one_row
from tests.wait import eventually
from timers.schedule_spec import ScheduleSpec
from timers.schedules import find_schedule, put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings

LATER = replace(ACTOR, now=T0 + timedelta(minutes=1))


async def only(connection: Connection, text: str, actor: Actor = LATER) -> ApplyResult:
    applied = await apply_only(connection, text, actor)
    await assert_nothing_is_orphaned(connection)
    return applied


async def states(connection: Connection) -> dict[uuid.UUID, str]:
    return {row["id"]: row["state"] for row in await rows(connection, "action")}


async def test_a_removed_schedule_is_cancelled_with_its_tick(connection: Connection) -> None:
    await put(connection, schedule("beat") + schedule("other"))
    applied = await only(connection, schedule("other"))
    assert [(change.key, change.outcome) for change in applied.plan.effective] == [
        (("schedule", "beat"), "removed")
    ]
    row = await find_schedule(connection, "", "beat")
    assert row is not None
    assert (row["status"], row["nominal_at"]) == ("cancelled", None)
    assert await timers(connection) == [("schedule-tick", "")]
    audit = await one_row(connection, "select * from tocsin.audit where verb = 'cancel'")
    assert (audit["name"], audit["who"]) == ("beat", "tester")
    version = await one_row(connection, "select * from tocsin.rule_version where name = 'beat'")
    assert version["until_seq"] == applied.seq
    payload = (await events(connection))[-1]["payload"]
    assert payload["documents"] == [{"kind": "schedule", "name": "beat", "version": 1, "outcome": "removed"}]


async def test_a_removed_document_comes_back_as_its_next_version(connection: Connection) -> None:
    await put(connection, schedule("beat") + action("tell"))
    await only(connection, action("tell"))
    again = await only(connection, schedule("beat") + action("tell"))
    assert [(change.outcome, change.version) for change in again.plan.effective] == [("added", 2)]
    row = await find_schedule(connection, "", "beat")
    assert row is not None
    assert (row["status"], row["nominal_at"]) == ("active", LATER.now + timedelta(seconds=10))


async def test_pruning_twice_changes_nothing(connection: Connection) -> None:
    await put(connection, schedule("beat") + action("tell"))
    await only(connection, action("tell"))
    before = [await rows(connection, table) for table in ("schedule", "event", "rule_version", "audit")]
    assert (await only(connection, action("tell"))).seq is None
    assert before == [
        await rows(connection, table) for table in ("schedule", "event", "rule_version", "audit")
    ]


async def test_a_schedule_of_a_former_owner_is_cancelled_for_that_owner(connection: Connection) -> None:
    await put(connection, schedule("beat", extra="  owner: a\n"))
    await only(connection, schedule("beat", extra="  owner: b\n"))
    await only(connection, action("tell"))
    assert {row["status"] for row in await rows(connection, "schedule")} == {"cancelled"}
    assert await timers(connection) == []


async def test_a_schedule_that_an_operator_took_over_is_left_alone(connection: Connection) -> None:
    await put(connection, schedule("beat") + action("tell"))
    async with connection.transaction():
        await put_schedule(connection, ScheduleSpec("beat", {"every": "1h"}), ACTOR)
    await only(connection, action("tell"))
    row = await find_schedule(connection, "", "beat")
    assert row is not None
    assert (row["status"], row["source"]) == ("active", "api")


async def test_an_action_of_a_schedule_outside_the_files_is_not_removed(connection: Connection) -> None:
    await put(connection, action("tell") + action("other"))
    async with connection.transaction():
        spec = ScheduleSpec("mine", {"every": "1h"}, owner="ann", action="tell")
        await put_schedule(connection, spec, ACTOR)
    with pytest.raises(
        Refused, match="action 'tell' cannot be removed, schedule 'mine' of owner 'ann' runs it"
    ):
        await only(connection, action("other"))
    loaded = load_text(action("other"))
    with pytest.raises(Refused, match="cannot be removed"):
        await apply(connection, loaded, ACTOR, removing=frozenset({("action", "tell")}))


async def test_the_remaining_documents_must_be_valid(connection: Connection) -> None:
    await put(connection, action("tell"))
    with pytest.raises(RulesInvalid, match="unknown action 'tell'"):
        load_text(rule("each", "tell"))


async def test_gathering_and_queued_runs_of_a_removed_rule_are_cancelled_and_running_ones_finish(
    connection: Connection,
) -> None:
    await put(connection, action("tell") + rule("each", "tell") + rule("kept", "tell"))
    gathering = await begin(connection, "each", "gathering", "g1")
    queued = await begin(connection, "each", "queued")
    running = await begin(connection, "each", "running")
    kept = await begin(connection, "kept", "gathering")
    loaded = load_text(action("tell") + rule("kept", "tell"))
    seen = await preview(connection, loaded, ACTOR.now, prune=True)
    assert seen.runs == {("action_rule", "each"): RunImpact(cancelled=2, finishing=1)}
    applied = await only(connection, action("tell") + rule("kept", "tell"))
    assert applied.cancelled == 2
    assert await states(connection) == {
        gathering: "cancelled",
        queued: "cancelled",
        running: "running",
        kept: "gathering",
    }
    assert await timers(connection) == [("runbook-wait", "group")]
    steps = await rows(connection, "action_step")
    assert {step["action_id"] for step in steps} == {gathering, queued}
    assert [(step["state"], step["result"]) for step in steps] == [
        ("cancelled", {"reason": "the rule was removed"})
    ] * 2
    # The versions end at the event, not at a later step.
    assert [(event["type"], event["seq"]) for event in await events(connection)][-1] == (
        "rules-applied",
        applied.seq,
    )
    row = await one_row(connection, "select * from tocsin.action where id = %s", (queued,))
    assert (row["error"], row["active"]) == ("the rule was removed", {})
    assert row["ended_at"] is not None


async def test_runs_that_dispatch_gathered_and_queued_are_cancelled(
    connection: Connection, settings: Settings
) -> None:
    grouped = rule("grouped", "tell", extra="  group_by: [type]\n  group_wait: 1h\n")
    queueing = rule("queueing", "tell", extra="  overlap: queue\n")
    await put(connection, action("tell") + grouped + queueing)
    for _ in range(3):
        await note(connection)
    await dispatch(settings, connection, await event_bodies(connection))
    before = sorted((row["action_rule"], row["state"]) for row in await actions(connection))
    assert before == [
        ("grouped", "gathering"),
        ("queueing", "queued"),
        ("queueing", "queued"),
        ("queueing", "running"),
    ]
    assert (await only(connection, action("tell"))).cancelled == 3
    after = sorted((row["action_rule"], row["state"]) for row in await actions(connection))
    assert after == [
        ("grouped", "cancelled"),
        ("queueing", "cancelled"),
        ("queueing", "cancelled"),
        ("queueing", "running"),
    ]
    assert await timers(connection) == []


async def test_unstarted_runs_of_a_disabled_rule_are_cancelled_too(connection: Connection) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    await begin(connection, "each", "gathering")
    await put(connection, rule("each", "tell", extra="  enabled: false\n"))
    (row,) = await rows(connection, "action")
    assert (row["state"], row["error"]) == ("cancelled", "the rule was disabled")
    await assert_nothing_is_orphaned(connection)


async def test_a_changed_rule_keeps_its_group(connection: Connection) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    await begin(connection, "each", "gathering")
    await put(connection, rule("each", "tell", "true"))
    assert list((await states(connection)).values()) == ["gathering"]
    assert await timers(connection) == [("runbook-wait", "group")]


async def test_a_group_that_the_clock_starts_at_the_same_time_is_not_cancelled(
    connection: Connection, watch: Connection, sessions: Sessions
) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    await begin(connection, "each", "gathering")
    clock, applier = await sessions("clock"), await sessions("apply")
    async with clock.transaction():
        await clock.execute("delete from tocsin.timer where kind = 'runbook-wait'")
        loaded, removing = load_text(action("tell")), frozenset({("action_rule", "each")})
        applying = asyncio.create_task(apply(applier, loaded, LATER, removing=removing))
        await eventually(lambda: blocked(watch, applier), "the apply waits for the clock")
        await clock.execute("update tocsin.action set state = 'running'")
    assert (await applying).cancelled == 0
    assert list((await states(connection)).values()) == ["running"]
    await assert_nothing_is_orphaned(connection)


async def test_a_running_action_keeps_the_document_it_was_started_with(
    connection: Connection, settings: Settings
) -> None:
    await put(connection, action("tell", "one") + rule("each", "tell"))
    await note(connection)
    await dispatch(settings, connection, await event_bodies(connection))
    await put(connection, action("tell", "two"))
    assert await _run_impact(connection, action("tell", "three") + rule("each", "tell")) == RunImpact(0, 1)
    await only(connection, action("other"))
    (row,) = await actions(connection)
    assert (row["state"], row["document"]["log"]["message"]) == ("running", "one")


async def _run_impact(connection: Connection, text: str) -> RunImpact:
    seen = await preview(connection, load_text(text), ACTOR.now, prune=False)
    return seen.runs["action", "tell"]


@pytest.mark.parametrize(
    "after",
    [
        rule("renamed", "tell"),
        schedule("each"),
        rule("each", "tell", "false"),
    ],
    ids=["renamed", "re-typed", "changed"],
)
async def test_an_earlier_event_is_evaluated_with_the_earlier_rules_and_once(
    connection: Connection, settings: Settings, after: str
) -> None:
    """It is delivered before the apply and again after it: nothing starts twice or under another name."""
    await put(connection, action("tell") + rule("each", "tell"))
    await note(connection)
    bodies = await event_bodies(connection)
    assert await dispatch(settings, connection, bodies) == 1
    await only(connection, after + action("tell"))
    assert await dispatch(settings, connection, bodies) == 0
    late = await note(connection)
    started = await dispatch(settings, connection, await event_bodies(connection, after=late - 1))
    assert started == (1 if "renamed" in after else 0)
    found = [row["action_rule"] for row in await actions(connection)]
    assert found == ["each"] + ["renamed"] * started


async def test_an_earlier_event_that_comes_late_starts_the_action_of_its_time(
    connection: Connection, settings: Settings
) -> None:
    await put(connection, action("tell", "one") + rule("each", "tell"))
    await note(connection)
    bodies = await event_bodies(connection)
    await only(connection, action("other"))
    assert await dispatch(settings, connection, bodies) == 1
    (row,) = await actions(connection)
    assert (row["action_rule"], row["document"]["log"]["message"]) == ("each", "one")
    await assert_nothing_is_orphaned(connection)


async def test_an_apply_removes_only_what_the_operator_agreed_to(connection: Connection) -> None:
    await put(connection, action("tell") + action("other"))
    loaded = load_text(action("other"))
    seen = await preview(connection, loaded, ACTOR.now, prune=True)
    await put(connection, action("third"))
    with pytest.raises(Refused, match="the rules were changed after the plan was shown"):
        await apply(connection, loaded, ACTOR, removing=seen.plan.removed)
    assert len(await rows(connection, "rule_version")) == 3


async def test_concurrent_applies_that_remove_run_one_after_the_other(
    connection: Connection, sessions: Sessions
) -> None:
    """Each sees all changes of the other, or none."""
    await put(connection, "".join(action(f"a{n}") for n in range(3)))
    texts = [action("a0") + action(f"mine{n}") for n in range(4)]

    async def one(text: str) -> bool:
        own = await sessions("apply")
        loaded = load_text(text)
        seen = await preview(own, loaded, ACTOR.now, prune=True)
        try:
            await apply(own, loaded, ACTOR, removing=seen.plan.removed)
        except Refused:
            return False
        return True

    done = await asyncio.gather(*map(one, texts))
    holding = await all_rows(connection, "select name from tocsin.rule_version where until_seq is null")
    assert any(done)
    names = sorted(row["name"] for row in holding)
    assert names[0] == "a0"
    assert len(names) == 2
