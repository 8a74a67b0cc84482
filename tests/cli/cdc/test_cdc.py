"""`tocsin cdc`: status, verify, adopt and rebuild; and the lines of the doctor about them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable

import pytest
import structlog
from nats.js.api import ConsumerConfig
from typer.testing import CliRunner

from cdc.errors import StreamDiffers
from cdc.publisher import Publisher
from cdc.report import read_report
from tests.cdc.published_records import (
    append,
    append_steps,
    bodies,
    forget_after,
    head,
    last_sequence,
    live,
    publish_all,
    publish_all_but,
    published,
    with_long_timeouts,
)
from tests.cli.conftest import CommandLine
from tests.wait import eventually
from tocsin.cli.app import app
from tocsin.core.db import Connection, connect
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

Work = Callable[[Connection], Awaitable[object]]


def do(settings: Settings, *works: Work) -> list[object]:
    """Run work outside of the command line, in an event loop of its own."""

    async def all_of_it() -> list[object]:
        connection = await connect(with_long_timeouts(settings), "test")
        try:
            return [await work(connection) for work in works]
        finally:
            await connection.close()

    return asyncio.run(all_of_it())


def append_records(count: int) -> Work:
    return lambda connection: append(connection, count)


def publish_log(settings: Settings) -> Work:
    return lambda _: publish_all(settings)


def lose_after(seq: int) -> Work:
    return lambda connection: forget_after(connection, seq)


def execute_sql(sql: str) -> Work:
    return lambda connection: connection.execute(sql.encode())


def supervised(settings: Settings, problem: str | None) -> Work:
    """Run a publisher until its report has this problem."""

    async def work(connection: Connection) -> None:
        async def is_reported() -> bool:
            report = await read_report(connection)
            return report.problem == problem and (problem is not None or report.at is not None)

        async with running(Service("cdc", Publisher(settings).run)):
            await eventually(is_reported, f"the report says {problem}")

    return work


def test_status_of_an_empty_log(tocsin: CommandLine, settings: Settings) -> None:
    lines = dict(line.split(maxsplit=1) for line in tocsin("cdc", "status").lines)
    assert lines == {
        "log": "empty",
        "stream": f"'{settings.stream}' does not exist yet",
        "lag": "0 records, 0.0 s",
        "leader": "none",
        "check": "none yet",
        "tombstones": "none",
    }


def test_status_names_head_lag_check_gaps_and_tombstones(tocsin: CommandLine, settings: Settings) -> None:
    do(
        settings,
        append_records(4),
        execute_sql("delete from tocsin.event where seq = 2"),
        execute_sql("select tocsin.record_gap(2, 2, E'lost\\x1b[1m', 'ann')"),
        execute_sql("update tocsin.event set ts = 'infinity' where seq = 3"),
        supervised(settings, None),
        publish_log(settings),
        append_records(1),
    )
    lines = dict(line.split(maxsplit=1) for line in tocsin("cdc", "status").lines)
    assert lines["log"] == "from 1 to 5"
    assert lines["stream"] == f"'{settings.stream}' from 1 to 4, 4 messages"
    assert re.fullmatch(r"1 records, \d+\.\d s", lines["lag"])
    assert "compared, none different" in lines["check"]
    assert lines["gap"].startswith(r"2 to 2 (1), lost\x1b[1m; recorded by ann, ")
    assert lines["tombstones"] == "1 event, 1 gap"
    found = tocsin("cdc", "status", "--json").json
    assert (found["head"], found["last_seq"], found["lag"], found["horizon"]) == (5, 4, 1, 1)
    assert found["tombstones"] == {"event": 1, "gap": 1}
    assert found["gaps"][0]["until_seq"] == 2
    assert (found["report"]["problem"], found["report"]["last_seq"] is not None) == (None, True)


def test_verify_without_differences_counts_what_it_compared(tocsin: CommandLine, settings: Settings) -> None:
    do(
        settings,
        append_records(3),
        lambda connection: append_steps(connection, 2),
        publish_log(settings),
        append_records(2),
    )
    assert tocsin("cdc", "verify").out == "compared 1 to 5, 5 records: none differs\n"
    assert (
        tocsin("cdc", "verify", "--from", "2", "--until", "4").out
        == "compared 2 to 4, 3 records: none differs\n"
    )
    answer = tocsin("cdc", "verify", "--from", "5", "--json")
    assert answer.json == {
        "first": 5,
        "last": 5,
        "compared": 1,
        "accepted": 0,
        "different": 0,
        "differences": [],
    }
    assert answer.err == ""


def test_verify_accepts_tombstones_of_records_that_cannot_be_read(
    tocsin: CommandLine, settings: Settings
) -> None:
    unreadable = "update tocsin.event set ts = 'infinity' where seq in (7, 30)"
    do(settings, append_records(40), execute_sql(unreadable), publish_log(settings))
    assert tocsin("cdc", "verify").out.endswith("compared 1 to 40, 40 records: none differs\n")
    # It has no time that could be shown.
    shown = tocsin("tail", "--from-seq", "7", "--count", "1").out
    assert shown.startswith("7  event  record-unsendable  ")


def test_verify_names_the_first_differences_and_exits_with_1(tocsin: CommandLine, settings: Settings) -> None:
    do(
        settings,
        append_records(1200),
        publish_log(settings),
        execute_sql("update tocsin.event set payload = '{}' where seq between 501 and 540"),
        execute_sql("delete from tocsin.event where seq = 600"),
        execute_sql("delete from tocsin.event where seq = 700"),
        execute_sql("select tocsin.record_gap(700, 700, 'lost', 'ann')"),
    )
    lines = tocsin("cdc", "verify", exit_code=1).lines
    assert lines[0] == "501: the body differs in data"
    assert len(lines) == 22
    assert lines[-2:] == ["and 21 more", "compared 1 to 1200, 1200 records, 1 in recorded gaps: 41 differ"]
    only = tocsin("cdc", "verify", "--from", "590", "--until", "610", "--json", exit_code=1).json
    assert (only["different"], [difference["seq"] for difference in only["differences"]]) == (1, [600])
    assert only["differences"][0]["what"].startswith("the log has no record, the stream has ")


def test_verify_sees_messages_that_the_stream_lacks(tocsin: CommandLine, settings: Settings) -> None:
    do(settings, append_records(5), lambda connection: publish_all_but(settings, connection, 3, 5))
    assert tocsin("cdc", "verify", exit_code=1).lines == [
        "3: the stream has no message",
        "5: the stream has no message",
        "compared 1 to 5, 5 records: 2 differ",
    ]
    # And a rebuild fixes it.
    assert tocsin("cdc", "rebuild", "--yes").out == "rebuilt the stream from 1 to 6\n"
    tocsin("cdc", "verify")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (("--from", "4", "--until", "2"), "from 4 until 2 is not a range: give the smaller one first"),
        (("--until", "6"), "log and stream have 1 to 5 in common, not 6: give a part of that"),
        (("--from", "6"), "log and stream have 1 to 5 in common, not 6: give a part of that"),
    ],
)
def test_verify_refuses_empty_ranges(
    tocsin: CommandLine, settings: Settings, given: tuple[str, ...], error: str
) -> None:
    do(settings, append_records(5), publish_log(settings))
    assert tocsin("cdc", "verify", *given, exit_code=1).err == f"tocsin: {error}\n"
    assert tocsin("cdc", "verify", "--from", "0", exit_code=2).err.startswith("Usage")


def test_verify_of_an_empty_log(tocsin: CommandLine, settings: Settings) -> None:
    missing = f"tocsin: there is no stream '{settings.stream}': start `tocsin run cdc`, which creates it from the log\n"
    assert tocsin("cdc", "verify", exit_code=1).err == missing
    do(settings, publish_log(settings))
    assert tocsin("cdc", "verify").out == "nothing to compare: log and stream have no common records yet\n"
    assert tocsin("cdc", "verify", "--from", "1", exit_code=1).err == (
        "tocsin: log and stream have nothing in common yet: give no range\n"
    )


def test_a_loss_is_reported_and_accepted(tocsin: CommandLine, settings: Settings) -> None:
    do(
        settings,
        append_records(6),
        append_records(4),
        publish_log(settings),
        lose_after(6),
        supervised(settings, "diverged"),
    )
    found = {check["subject"]: check for check in tocsin("doctor", "--json", exit_code=1).json}
    assert found["stream check"]["state"] == "red"
    assert found["stream check"]["text"].startswith("diverged since ")
    assert found["stream check"]["remedy"].endswith("accept the loss with `tocsin cdc adopt`")
    assert "diverged since" in tocsin("cdc", "status").out
    assert "accept the loss with `tocsin cdc adopt`" in tocsin("cdc", "verify", exit_code=1).err
    assert "`tocsin cdc adopt` first" in tocsin("cdc", "rebuild", "--yes", exit_code=1).err

    # The input is empty, so there is no yes.
    asked = tocsin("cdc", "adopt", exit_code=1)
    assert asked.out == ""
    assert "the stream has other records than the log at 7 to 10" in asked.err
    # The event about the loss has taken the next sequence.
    assert (
        "1 records of the log from 7 on were never published; their sequences will be higher by 4"
        in asked.err
    )
    assert asked.err.endswith("nothing was changed: answer y, or add --yes\n")
    assert do(settings, head) == [7]

    done = tocsin("cdc", "adopt", "--yes", "--by", "ann")
    assert done.lines == [
        "recorded the gap 7 to 10, as an event and in the audit",
        "the log continues at 11; 1 records were moved there",
    ]
    do(settings, supervised(settings, None), publish_log(settings))
    assert tocsin("cdc", "verify").lines[-1].endswith("4 in recorded gaps: none differs")
    assert tocsin("cdc", "adopt", "--yes", exit_code=1).err == (
        "tocsin: nothing to adopt: the log has every record of the stream, and no hole\n"
    )
    assert [row["who"] for row in tocsin("audit", settings.stream, "--json").json] == ["ann"]
    found = {check["subject"]: check for check in tocsin("doctor", "--json", exit_code=1).json}
    assert found["stream check"]["state"] == "ok"
    assert found["log gaps"]["text"].startswith("1 recorded, 4 records; the last 7 to 10 (")


def test_a_sequence_that_another_process_took_is_accepted_and_its_record_moved(
    tocsin: CommandLine, settings: Settings
) -> None:
    async def take_a_sequence(connection: Connection) -> None:
        async with live(settings) as publisher:
            await publisher.js.publish(f"{settings.subjects}.event.caused.noted.x.y", b'{"id": "foreign"}')
            await append(connection, 3)
            with pytest.raises(StreamDiffers):
                await publisher.drain()

    do(settings, append_records(2), publish_log(settings), take_a_sequence)
    assert "3: the log has " in tocsin("cdc", "verify", exit_code=1).out
    asked = tocsin("cdc", "adopt", exit_code=1)
    assert "the stream has other records than the log at 3 to 3" in asked.err
    assert "log and stream agree behind them" in asked.err
    assert tocsin("cdc", "adopt", "--yes").lines == [
        "recorded the gap 3 to 3, as an event and in the audit",
        "1 records were moved to the end of the log",
    ]
    do(settings, publish_log(settings))
    assert tocsin("cdc", "verify").lines[-1].endswith("1 in recorded gaps: none differs")


@pytest.mark.parametrize(
    ("answer", "exit_code"), [("y\n", 0), ("YES\n", 0), ("n\n", 1), ("\n", 1), ("why\n", 1)]
)
def test_only_a_yes_is_a_yes(tocsin: CommandLine, settings: Settings, answer: str, exit_code: int) -> None:
    do(settings, append_records(2))
    result = CliRunner().invoke(app, ["cdc", "rebuild", "--json"], input=answer, env=tocsin.environment)
    structlog.reset_defaults()
    assert (result.exit_code, "error" in json.loads(result.stdout)) == (exit_code, exit_code == 1)
    assert "remove the stream and make it again? [y/N] " in result.stderr
    assert asyncio.run(last_sequence(settings)) == (-1 if exit_code else 3)


def test_a_hole_is_accepted_in_json(tocsin: CommandLine, settings: Settings) -> None:
    do(settings, append_records(5), execute_sql("delete from tocsin.event where seq in (3, 4)"))
    answer = tocsin("cdc", "adopt", "--yes", "--json")
    assert answer.json == {"from": 3, "until": 4, "in_stream": False, "moved": 0}
    do(settings, publish_log(settings))
    assert tocsin("cdc", "verify", "--json").json["accepted"] == 2


def test_a_rebuilt_stream_is_the_same_and_its_consumers_are_named(
    tocsin: CommandLine, settings: Settings
) -> None:
    async def make_consumer(_: Connection) -> None:
        async with live(settings) as publisher:
            await publisher.js.add_consumer(settings.stream, ConsumerConfig(durable_name="billing"))

    do(settings, append_records(700), publish_log(settings), make_consumer)
    before = asyncio.run(bodies(settings))
    asked = tocsin("cdc", "rebuild", exit_code=1)
    assert "these durable consumers are removed with the stream: billing" in asked.err
    assert asyncio.run(last_sequence(settings)) == 700
    assert tocsin("cdc", "rebuild", "--yes", "--json").json == {
        "from": 1,
        "until": 701,
        "consumers": ["billing"],
    }
    after = asyncio.run(bodies(settings))
    assert after[:-1] == before
    assert (after[-1]["type"], after[-1]["data"]["via"]) == ("stream-rebuilt", "cli")
    assert tocsin("audit", settings.stream, "--json").json[0]["verb"] == "rebuild"


def test_a_rebuild_while_a_publisher_runs_loses_nothing(tocsin: CommandLine, settings: Settings) -> None:
    async def both(connection: Connection) -> None:
        async with running(Service("cdc", Publisher(settings).run)):
            await append(connection, 3000)
            await published(settings, connection)
            answer = await asyncio.to_thread(tocsin.answer, "cdc", "rebuild", "--yes")
            assert answer.exit_code == 0, answer.err
            await append(connection, 10)
            await published(settings, connection)

    do(settings, both)
    tocsin("cdc", "verify")


def test_a_rebuilt_stream_begins_where_the_log_begins(tocsin: CommandLine, settings: Settings) -> None:
    do(
        settings,
        append_records(10),
        publish_log(settings),
        execute_sql("delete from tocsin.event where seq < 5"),
    )
    assert tocsin("cdc", "rebuild", "--yes").out == "rebuilt the stream from 5 to 11\n"
    assert tocsin("cdc", "verify").out == "compared 5 to 11, 7 records: none differs\n"


def test_a_rebuild_that_could_not_be_completed_removes_nothing(
    tocsin: CommandLine, settings: Settings
) -> None:
    do(
        settings,
        append_records(10),
        publish_log(settings),
        execute_sql("delete from tocsin.event where seq = 5"),
    )
    refused = tocsin("cdc", "rebuild", "--yes", exit_code=1).err
    assert refused.startswith("tocsin: the log lacks 5 to 5, which therefore cannot be published again")
    assert asyncio.run(last_sequence(settings)) == 10


@pytest.mark.parametrize("command", ["status", "verify", "rebuild", "adopt"])
def test_unreachable_servers_are_named(alone: CommandLine, tocsin: CommandLine, command: str) -> None:
    assert alone("cdc", command, exit_code=2).err.startswith("tocsin: TOCSIN_POSTGRES is not set: ")
    tocsin.environment["TOCSIN_NATS"] = "nats://127.0.0.1:1"
    assert tocsin("cdc", command, exit_code=2).err.startswith(
        "tocsin: cannot reach nats at nats://127.0.0.1:1 "
    )
