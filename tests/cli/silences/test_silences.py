"""`tocsin silence add | list | expire`, and `ack` and `snooze` of several alarms."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from tests.cdc.published_records import with_long_timeouts
from tests.cli.conftest import CommandLine
from tocsin.core.db import connect
from tocsin.core.settings import Settings

_AMS = 'labels.site == "ams"'


@pytest.fixture
def alarms(settings: Settings) -> None:
    """Three open alarms: two of the site ams, one of fra."""

    async def put() -> None:
        connection = await connect(with_long_timeouts(settings), "test")
        for number, site in enumerate(("ams", "ams", "fra"), 1):
            await connection.execute(
                "insert into tocsin.alarm (id, event_rule, owner, state, severity, since, opened_at, payload,"
                " correlation_id) values (%(id)s, 'cpu-hot', %(owner)s, 'open', 4, '2026-03-02T08:00:00Z',"
                " tocsin.instant(), jsonb_build_object('labels', jsonb_build_object('site', %(site)s::text)),"
                " %(id)s)",
                {"id": uuid.UUID(str(number) * 32), "owner": f"host-{number}", "site": site},
            )
        await connection.close()

    asyncio.run(put())


@pytest.mark.usefixtures("alarms")
def test_a_silence_is_added_listed_and_expired(tocsin: CommandLine) -> None:
    added = tocsin(
        "silence", "add", "--where", _AMS, "--for", "2h", "--reason", "new switch", "--by", "ann", "--yes"
    )
    assert added.lines[0].startswith("added silence ")
    assert added.lines[1:] == [
        "2 alarms match now:",
        "  11111111 (cpu-hot of 'host-1')",
        "  22222222 (cpu-hot of 'host-2')",
    ]
    header, line = tocsin("silence", "list").lines
    assert header.split() == ["ID", "STATE", "ALARMS", "BY", "SOURCE", "WHERE", "REASON"]
    assert "ends in 1h59m" in line
    assert line.split()[-6:] == ["operator", "labels.site", "==", '"ams"', "new", "switch"]
    (silence,) = tocsin("silence", "list", "--json").json
    assert (silence["alarms"], silence["created_by"], silence["source"]) == (2, "ann", "operator")
    ended = tocsin("silence", "expire", silence["id"][:6], "--by", "bob")
    assert ended.out == f"ended silence {silence['id'][:8]}, seq 2\n"
    assert tocsin("silence", "list").out == "no silences\n"
    assert "ended" in tocsin("silence", "list", "--all").lines[1]
    assert "ended at" in tocsin("silence", "expire", silence["id"], exit_code=1).err
    assert [row["verb"] for row in tocsin("audit", "--json").json] == ["add", "expire"]
    assert [row["type"] for row in tocsin("events", "--json").json] == ["silence-added", "silence-ended"]


@pytest.mark.usefixtures("alarms")
def test_a_silence_is_shown_and_asked_for(tocsin: CommandLine) -> None:
    asked = tocsin("silence", "add", "--where", _AMS, "--for", "2h", exit_code=1)
    assert "2 alarms match now:" in asked.err
    assert "add this silence? [y/N]" in asked.err
    assert "nothing was changed: answer y, or add --yes" in asked.err
    assert tocsin("silence", "list", "--all").out == "no silences\n"


def test_a_silence_of_later_has_its_times_in_words(tocsin: CommandLine) -> None:
    words = ("--from", "in 2 days", "--until", "in 3 days", "--yes", "--json")
    added = tocsin("silence", "add", "--where", "severity < high", *words).json
    assert (added["matches"], added["reason"], added["source"]) == (0, "", "operator")
    assert "begins in 1d23h" in tocsin("silence", "list").lines[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--for", "2h", "--until", "tomorrow at 9am"), "a silence needs exactly one end"),
        ((), "a silence needs exactly one end: give --for a duration, or --until a time"),
        (("--until", "2020-01-01T00:00Z"), "'2020-01-01T00:00Z' is in the past"),
        (("--from", "in 2h", "--until", "in 1h"), "before it starts"),
        (("--for", "400d"), "366 days at most"),
        (("--for", "2"), "'2' is not a duration"),
        (("--until", "soon"), "'soon' is not a time that tocsin understands"),
    ],
)
def test_a_silence_with_wrong_times_is_rejected(
    tocsin: CommandLine, words: tuple[str, ...], says: str
) -> None:
    assert says in tocsin("silence", "add", "--where", "true", *words, "--yes", exit_code=1).err


def test_a_wrong_matcher_has_its_column_and_a_hint(tocsin: CommandLine) -> None:
    answer = tocsin("silence", "add", "--where", 'lables.site == "ams"', "--for", "1h", exit_code=1)
    assert "--where: column 1: undeclared reference to 'lables', did you mean 'labels'?" in answer.err


@pytest.mark.usefixtures("alarms")
def test_alarms_are_acknowledged_by_a_matcher(tocsin: CommandLine) -> None:
    asked = tocsin("ack", "--where", _AMS, exit_code=1)
    assert "2 open alarms match now:" in asked.err
    assert "acknowledge them? [y/N]" in asked.err
    done = tocsin("ack", "--where", _AMS, "--yes", "--by", "bob")
    assert done.lines == [
        "acknowledged alarm 11111111 (cpu-hot of 'host-1'), seq 1",
        "acknowledged alarm 22222222 (cpu-hot of 'host-2'), seq 2",
        "acknowledged 2 of 2 alarms",
    ]
    answer = tocsin("ack", "1111", "3333", "--json").json
    assert (answer["count"], answer["failed"]) == (2, [])
    assert [alarm["changed"] for alarm in answer["alarms"]] == [False, True]


@pytest.mark.usefixtures("alarms")
def test_alarms_are_snoozed_together(tocsin: CommandLine) -> None:
    done = tocsin("snooze", "1111", "2222", "2h")
    assert "is snoozed until" in done.lines[0]
    assert "its notifications and runs are held until then, seq 1" in done.lines[0]
    assert done.lines[-1] == "snoozed 2 of 2 alarms"
    off = tocsin("snooze", "--off", "--where", "true", "--yes", "--json").json
    assert (off["count"], off["alarms"][0]["until"]) == (3, None)
    one = tocsin("snooze", "3333", "--until", "in 3 hours")
    assert one.out.startswith("alarm 33333333 (cpu-hot of 'host-3') is snoozed until ")


@pytest.mark.usefixtures("alarms")
def test_a_partial_failure_names_what_was_done(tocsin: CommandLine, settings: Settings) -> None:
    async def resolve() -> None:
        connection = await connect(with_long_timeouts(settings), "test")
        await connection.execute("update tocsin.alarm set state = 'resolved' where owner = 'host-1'")
        await connection.close()

    asyncio.run(resolve())
    answer = tocsin("ack", "1111", "2222", exit_code=1)
    assert answer.lines == [
        "acknowledged alarm 22222222 (cpu-hot of 'host-2'), seq 1",
        "acknowledged 1 of 2 alarms",
    ]
    assert "not acknowledged: alarm 11111111 (cpu-hot of 'host-1') is resolved" in answer.err


@pytest.mark.parametrize("command", ["ack", "snooze"])
def test_alarms_are_named_in_one_way(tocsin: CommandLine, command: str) -> None:
    end = ("2h",) if command == "snooze" else ()
    assert "by their ids, or by --where" in tocsin(command, *end, exit_code=1).err
    both = tocsin(command, "1111", *end, "--where", "true", exit_code=1)
    assert "ids and --where exclude each other" in both.err
