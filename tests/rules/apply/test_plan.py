"""A plan shows the changes of an apply, and writes nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from rules.apply import preview
from rules.apply.plan import StoredDocument, plan_changes
from rules.apply.schedules import NextFires
from rules.documents.load import load_text
from tests.rules.apply.apply_setup import ACTOR, T0, action, everything, put, rows, rule, schedule
from timers.schedules import pause_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection


def stored(text: str, version: int = 1, in_force: bool = True, **changed: Any) -> list[StoredDocument]:
    return [
        StoredDocument(one.kind, one.name, version, {**one.data, **changed}, in_force)
        for one in load_text(text).documents
    ]


def outcomes(
    text: str, before: list[StoredDocument], *, prune: bool = False
) -> list[tuple[str, str, str, int]]:
    found = plan_changes(load_text(text), before, prune=prune)
    return [(change.kind, change.name, change.outcome, change.version) for change in found.changes]


def test_the_files_are_compared_with_the_stored_documents() -> None:
    before = (
        stored(action("same")) + stored(action("other", "one"), 4) + stored(action("gone"), 2, in_force=False)
    )
    text = action("new") + action("same") + action("other", "two") + action("gone")
    assert outcomes(text, before) == [
        ("action", "new", "added", 1),
        ("action", "same", "unchanged", 1),
        ("action", "other", "changed", 5),
        ("action", "gone", "added", 3),
    ]


def test_only_prune_removes_documents_and_never_removed_ones() -> None:
    before = stored(schedule("b")) + stored(action("a"), 3) + stored(action("gone"), in_force=False)
    assert outcomes(action("new"), before) == [("action", "new", "added", 1)]
    assert outcomes(action("new"), before, prune=True) == [
        ("action", "new", "added", 1),
        ("action", "a", "removed", 3),
        ("schedule", "b", "removed", 1),
    ]


def test_a_key_that_is_new_in_this_version_of_tocsin_is_no_change() -> None:
    (one,) = stored(schedule("beat"))
    del one.content["max_catch_up"]
    assert outcomes(schedule("beat"), [one]) == [("schedule", "beat", "unchanged", 1)]
    assert outcomes(schedule("beat", extra="  max_catch_up: 3\n"), [one])[0][2] == "changed"


def test_a_stored_document_that_is_no_longer_valid_differs() -> None:
    before = stored(schedule("beat"), since_removed="x")
    assert outcomes(schedule("beat"), before) == [("schedule", "beat", "changed", 2)]
    assert (
        outcomes(action("other"), [StoredDocument("no_such_kind", "x", 1, {}, True)], prune=True)[1][2]
        == "removed"
    )


def test_true_is_not_one() -> None:
    before = stored(schedule("beat", extra="  payload: {x: true}\n"))
    assert outcomes(schedule("beat", extra="  payload: {x: 1}\n"), before)[0][2] == "changed"


async def next_fires(
    connection: Connection, text: str, actor: Actor = ACTOR, *, prune: bool = False
) -> NextFires:
    seen = await preview(connection, load_text(text, anchor=T0), actor.now, prune=prune)
    return seen.fires["schedule", "beat"]


def seconds(*after: int) -> tuple[datetime, ...]:
    return tuple(T0 + timedelta(seconds=number) for number in after)


async def test_the_next_three_fires_are_those_that_an_apply_arms(connection: Connection) -> None:
    seen = await next_fires(connection, schedule("beat"))
    assert seen == NextFires("UTC", (), seconds(10, 20, 30))
    await put(connection, schedule("beat"))
    assert await next_fires(connection, schedule("beat", "15s")) == NextFires(
        "UTC", seconds(10, 20, 30), seconds(15, 30, 45)
    )
    # An edit that does not change the recurrence keeps its anchor.
    later = Actor("tester", "test", T0 + timedelta(seconds=13))
    again = await next_fires(connection, schedule("beat", extra="  type: beaten\n"), later)
    assert again == NextFires("UTC", seconds(10, 20, 30), seconds(20, 30, 40))
    applied = await put(connection, schedule("beat", extra="  type: beaten\n"), later)
    assert applied.next_at["schedule", "beat"] == again.after[0]


async def test_a_paused_disabled_or_removed_schedule_has_no_next_fires(connection: Connection) -> None:
    await put(connection, schedule("beat"))
    assert await next_fires(connection, action("x"), prune=True) == NextFires("UTC", seconds(10, 20, 30), ())
    assert await next_fires(connection, schedule("beat", extra="  enabled: false\n")) == NextFires(
        "UTC", seconds(10, 20, 30), ()
    )
    async with connection.transaction():
        await pause_schedule(connection, "", "beat", ACTOR)
    assert await next_fires(connection, schedule("beat", "15s")) == NextFires("UTC", (), seconds(15, 30, 45))


async def test_a_schedule_that_ends_has_only_its_last_fires(connection: Connection) -> None:
    ending = f'  ends_at: "{(T0 + timedelta(seconds=25)).isoformat()}"\n'
    assert (await next_fires(connection, schedule("beat", extra=ending))).after == seconds(10, 20)


async def test_a_schedule_that_moves_to_another_owner_shows_both(connection: Connection) -> None:
    await put(connection, schedule("beat", extra="  owner: a\n"))
    later = Actor("tester", "test", T0 + timedelta(seconds=5))
    moved = await next_fires(connection, schedule("beat", extra="  owner: b\n"), later)
    assert moved == NextFires("UTC", seconds(10, 20, 30), seconds(15, 25, 35))


async def test_a_schedule_in_the_past_has_no_next_fires(connection: Connection) -> None:
    past = '---\nschedule:\n  name: beat\n  at: "2026-03-02T07:00:00Z"\n'
    assert (await next_fires(connection, past)).after == ()


async def test_a_plan_writes_nothing(connection: Connection) -> None:
    await put(connection, schedule("beat") + action("tell") + rule("each", "tell"))
    before = await everything(connection)
    text = schedule("beat", "15s") + action("tell", "other")
    await connection.execute("set default_transaction_read_only = on")
    await preview(connection, load_text(text, anchor=T0), ACTOR.now, prune=True)
    await connection.execute("set default_transaction_read_only = off")
    assert await everything(connection) == before
    assert len(await rows(connection, "rule_version")) == 3
