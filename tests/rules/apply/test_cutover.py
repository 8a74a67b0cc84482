"""Each datapoint is evaluated with the documents of one apply, and the cutovers record which one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from rules.apply.cutover import Cutover, Cutovers
from rules.documents.rule_book import RuleBook, RuleSet, newest_rules
from schemas.documents import ActionDocument
from tests.rules.apply.apply_setup import T0, action, note, put, schedule
from tests.sessions import Sessions
from tests.sql import all_rows, blocked
from tests.wait import eventually
from tocsin.core.db import Connection

Messages = dict[str, str]
P = TypeVar("P")


def messages_of(rules: RuleSet, before: Messages | None) -> Messages:
    """The messages of all documents: no two applies have the same."""
    return {name: one.log.message for name, one in rules.of(ActionDocument).items() if one.log is not None}


def new_book() -> RuleBook[Messages]:
    return RuleBook(messages_of, ActionDocument)


async def newest(book: RuleBook[P], connection: Connection) -> P:
    seq = await newest_rules(connection) + 1
    await book.refresh(connection, seq)
    return book.at(seq)


def both(message: str) -> str:
    return action("a", message) + action("b", message)


async def partition(connection: Connection, number: int, lane: str = "data") -> None:
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition) values (%s, %s)", (lane, number)
    )


async def lock(connection: Connection, number: int) -> None:
    """The first lock of a batch."""
    await connection.execute(
        "select 1 from tocsin.lane_partition where lane = 'data' and partition = %s for update", (number,)
    )


async def read_until(connection: Connection, number: int, seq: int, at: datetime) -> None:
    await connection.execute(
        "update tocsin.lane_partition set last_seq = %s, watermark = %s "
        "where lane = 'data' and partition = %s",
        (seq, at, number),
    )


async def read_cutovers(connection: Connection) -> Cutovers:
    """The cutovers of the data lane."""
    applies = await all_rows(
        connection,
        "select from_seq as seq from tocsin.rule_version union"
        " select until_seq from tocsin.rule_version where until_seq is not null order by 1",
    )
    rows = await all_rows(
        connection,
        "select partition, rules_seq, seq, watermark from tocsin.rule_cutover where lane = 'data'",
    )
    return Cutovers([row["seq"] for row in applies], [Cutover(**row) for row in rows])


async def test_the_newest_rules_are_the_ones_that_were_applied_last(connection: Connection) -> None:
    book = new_book()
    assert await newest(book, connection) == {}
    await put(connection, both("one"))
    assert await newest(book, connection) == {"a": "one", "b": "one"}
    await note(connection)
    await put(connection, action("a", "two"))
    rules = await newest(book, connection)
    assert rules == {"a": "two", "b": "one"}
    await put(connection, schedule("beat"))
    assert await newest(book, connection) == rules


async def test_an_apply_that_only_removes_is_seen(connection: Connection) -> None:
    book = new_book()
    await put(connection, both("one"))
    await newest(book, connection)
    seq = await note(connection)
    await connection.execute("update tocsin.rule_version set until_seq = %s where name = 'a'", (seq,))
    assert await newest(book, connection) == {"b": "one"}


async def test_an_apply_between_two_statements_of_a_batch_is_not_seen_in_part(
    connection: Connection,
) -> None:
    """Even without the lock of its partition: the rules are those of the seq that was read first."""
    await put(connection, both("one"))
    book = new_book()
    read = book._read

    async def overtaken(*arguments: object) -> None:
        await put(connection, action("a", "two"))
        await read(*arguments)  # type: ignore[arg-type]

    book._read = overtaken  # type: ignore[method-assign,assignment]
    assert await newest(book, connection) == {"a": "one", "b": "one"}
    book._read = read  # type: ignore[method-assign]
    assert await newest(book, connection) == {"a": "two", "b": "one"}


async def test_unchanged_rules_are_not_compiled_again(connection: Connection) -> None:
    await put(connection, both("one"))
    seen: list[tuple[RuleSet, RuleSet | None]] = []

    def remember(rules: RuleSet, before: RuleSet | None) -> RuleSet:
        seen.append((rules, before))
        return rules

    book = RuleBook(remember, ActionDocument)
    first = await newest(book, connection)
    assert await newest(book, connection) is first
    await put(connection, action("a", "two"))
    second = await newest(book, connection)
    assert seen == [(first, None), (second, first)]
    assert second.of(ActionDocument)["b"] is first.of(ActionDocument)["b"]


async def test_an_apply_waits_for_the_running_batches_and_blocks_others(
    connection: Connection,
    watch: Connection,
    sessions: Sessions,
) -> None:
    for number in (0, 1):
        await partition(connection, number)
    applier, worker, other = [await sessions(name) for name in ("apply", "worker", "other")]
    await put(connection, both("one"))
    book, after = new_book(), new_book()
    async with worker.transaction():
        await lock(worker, 0)
        assert await newest(book, worker) == {"a": "one", "b": "one"}
        applying = asyncio.create_task(put(applier, both("two")))
        await eventually(lambda: blocked(watch, applier), "the apply waits for the batch")
        # The batch continues with what it read: nothing else is committed.
        assert await newest(book, worker) == {"a": "one", "b": "one"}
        await read_until(worker, 0, 7, T0)
    applied = await applying
    async with other.transaction():
        await lock(other, 0)
        assert await newest(after, other) == {"a": "two", "b": "two"}
    rows = await all_rows(
        connection,
        "select * from tocsin.rule_cutover where rules_seq = %s order by partition",
        (applied.seq,),
    )
    assert [(row["partition"], row["seq"], row["watermark"]) for row in rows] == [
        (0, 7, T0),
        (1, 0, None),
    ]


async def test_a_batch_that_meets_an_apply_waits_and_sees_all_of_it(
    connection: Connection,
    watch: Connection,
    sessions: Sessions,
) -> None:
    await partition(connection, 0)
    await put(connection, both("one"))
    applier, worker = [await sessions(name) for name in ("apply", "worker")]
    book = new_book()

    async def batch() -> Messages:
        async with worker.transaction():
            await lock(worker, 0)
            return await newest(book, worker)

    async with applier.transaction():
        await put(applier, both("two"))
        reading = asyncio.create_task(batch())
        await eventually(lambda: blocked(watch, worker), "the batch waits for the apply")
    assert await reading == {"a": "two", "b": "two"}


async def test_the_position_of_the_record_lane_is_recorded_and_is_no_cutover_of_the_data_lane(
    connection: Connection,
) -> None:
    await partition(connection, 0, "record")
    await put(connection, both("one"))
    rows = await all_rows(connection, "select lane, partition, seq from tocsin.rule_cutover")
    assert [tuple(row.values()) for row in rows] == [("record", 0, 0)]
    assert (await read_cutovers(connection)).of_partition(0) == ()


async def test_each_datapoint_has_the_apply_that_evaluated_it(connection: Connection) -> None:
    first = (await put(connection, both("one"))).seq
    await partition(connection, 3)
    at = [T0 + timedelta(seconds=second) for second in range(10)]
    await read_until(connection, 3, 4, at[4])
    second = (await put(connection, both("two"))).seq
    await read_until(connection, 3, 6, at[6])
    third = (await put(connection, both("three"))).seq
    cutovers = await read_cutovers(connection)
    evaluated = [cutovers.rules_seq(3, at[seq], seq) for seq in range(1, 9)]
    assert evaluated == [first] * 4 + [second] * 2 + [third] * 2
    assert [row.watermark for row in cutovers.of_partition(3)] == [at[4], at[6]]
    # A partition that was not read before any apply has the newest.
    assert cutovers.rules_seq(5, at[0], 1) == third
    assert Cutovers([], []).rules_seq(0, at[0], 1) == 0


async def test_concurrent_batches_and_applies_never_mix_and_a_replay_agrees(
    connection: Connection, sessions: Sessions
) -> None:
    await put(connection, both("0"))
    for number in range(3):
        await partition(connection, number)
    evaluated: list[tuple[int, datetime, int, str]] = []
    is_over = asyncio.Event()

    async def drain(number: int) -> None:
        own, book = await sessions("worker"), new_book()
        seq = 0
        while not is_over.is_set():
            rules = await newest(book, own)
            assert rules["a"] == rules["b"], "the rules of two applies"
            at = T0 + timedelta(seconds=seq + 1)
            async with own.transaction() as transaction:
                await lock(own, number)
                if await newest(book, own) is rules:
                    await read_until(own, number, seq + 1, at)
                else:
                    transaction.force_rollback = True
            if not transaction.force_rollback:
                seq += 1
                evaluated.append((number, at, seq, rules["a"]))

    messages = {1: "0"}

    async def apply_often() -> None:
        own = await sessions("apply")
        count = 0
        while count < 15 or (count < 500 and len({message for *_, message in evaluated}) <= 5):
            count += 1
            messages[(await put(own, both(str(count)))).seq or 0] = str(count)
        is_over.set()

    await asyncio.gather(*(drain(number) for number in range(3)), apply_often())
    cutovers = await read_cutovers(connection)
    assert len({message for *_, message in evaluated}) > 5, "the applies came too late to meet a batch"
    found = [messages[cutovers.rules_seq(number, at, seq)] for number, at, seq, _ in evaluated]
    assert found == [message for *_, message in evaluated]


@dataclass
class Lane:
    """The history of a partition: applies, reads, and the rules of each read."""

    applies: list[int] = field(default_factory=list)
    rows: list[Cutover] = field(default_factory=list)
    evaluated: list[tuple[datetime, int, int]] = field(default_factory=list)
    exists: bool = False
    seq: int = 0
    at: datetime = T0
    watermark: datetime | None = None


@given(
    st.lists(st.sampled_from(["apply", "make", "message", "same instant", "idle", "stream created again"]))
)
def test_in_any_order_a_replay_finds_the_rules_of_the_time(steps: list[str]) -> None:
    lane = Lane()
    for step in steps:
        if step == "apply":
            lane.applies.append(len(lane.applies) * 10 + 1)
            if lane.exists:
                lane.rows.append(Cutover(0, lane.applies[-1], lane.seq, lane.watermark))
        elif step == "make":
            lane.exists = True
        elif lane.exists and step in ("message", "same instant"):
            lane.at += timedelta(seconds=step == "message" or not lane.seq)
            lane.seq += 1
            lane.watermark = max(lane.at, lane.watermark or lane.at)
            lane.at = lane.watermark
            lane.evaluated.append((lane.at, lane.seq, lane.applies[-1] if lane.applies else 0))
        elif step == "idle":
            lane.at += timedelta(seconds=1)
            lane.watermark = lane.at
        elif step == "stream created again":
            lane.seq = 0
    cutovers = Cutovers(lane.applies, lane.rows)
    assert [cutovers.rules_seq(0, at, seq) for at, seq, _ in lane.evaluated] == [
        rules for *_, rules in lane.evaluated
    ]
