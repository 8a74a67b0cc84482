"""`tocsin alarms`, `ack`, `snooze` and `explain` of an alarm."""

from __future__ import annotations

import asyncio

import pytest

from tests.cdc.published_records import with_long_timeouts
from tests.cli.conftest import CommandLine
from tests.clock.alarms import hold_alarm, read_until
from tests.clock.clock_setup import at
from tocsin.core.db import connect
from tocsin.core.settings import Settings


@pytest.fixture
def held(settings: Settings) -> None:
    async def put() -> None:
        connection = await connect(with_long_timeouts(settings), "test")
        await read_until(connection, at(60))
        await hold_alarm(connection, "open")
        await connection.execute("""update tocsin.alarm set payload = '{"message": "it is hot"}'""")
        await connection.close()

    asyncio.run(put())


def test_without_alarms_the_list_is_empty(tocsin: CommandLine) -> None:
    assert tocsin("alarms").out == "no alarms\n"
    assert tocsin("alarms", "--state", "resolved").out == "no alarms match\n"
    assert tocsin("alarms", "--state", "all").out == "no alarms\n"
    assert tocsin("alarms", "--rule", "nope").out == "no alarms match\n"
    assert tocsin("alarms", "--json").json == []


@pytest.mark.usefixtures("held")
def test_an_alarm_is_listed_acknowledged_and_snoozed(tocsin: CommandLine) -> None:
    header, line = tocsin("alarms").lines
    assert header.split() == ["ID", "SEVERITY", "STATE", "RULE", "OWNER", "INSTANCE", "SINCE", "MESSAGE"]
    assert line.split()[:5] == ["aaaaaaaa", "high", "open", "dsp-hot", "plant-7"]
    assert line.endswith("it is hot")
    done = tocsin("ack", "aaaaaaaa", "--note", "on it", "--by", "bob")
    assert done.out == "acknowledged alarm aaaaaaaa (dsp-hot of 'plant-7'), seq 1\n"
    assert "was already acknowledged by bob at" in tocsin("ack", "aaaaaaaa", "--by", "ann").out
    snoozed = tocsin("snooze", "aaaaaaaa", "2h", "--by", "bob", "--json").json
    assert snoozed["seq"] == 2
    assert "open (acknowledged by bob, snoozed for " in tocsin("alarms").lines[1]
    assert tocsin("snooze", "aaaaaaaa", "--off").out.endswith("is no longer snoozed, seq 3\n")
    assert [change["verb"] for change in tocsin("audit", "dsp-hot", "--json").json] == [
        "acknowledge",
        "snooze",
        "snooze",
    ]


@pytest.mark.usefixtures("held")
def test_an_alarm_is_explained_by_its_id(tocsin: CommandLine) -> None:
    tocsin("ack", "aaaaaaaa", "--by", "bob")
    lines = tocsin("explain", "aaaaaaaa").lines
    assert lines[0] == "dsp-hot of 'plant-7' is open: it is hot"
    assert lines[1].endswith("the condition began")
    assert "acknowledged by bob (seq 1)" in lines[2]
    assert tocsin("explain", "aaaaaaaa", "--json").json["state"] == "open"


@pytest.mark.usefixtures("held")
def test_a_schedule_of_the_same_name_is_explained_instead(tocsin: CommandLine) -> None:
    tocsin("schedule", "add", "aaaaaaaa", "--every", "1h")
    assert tocsin("explain", "aaaaaaaa").out.startswith("aaaaaaaa ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("ack", "xyz"), "'xyz' is not the id of an alarm: give four characters of it or more"),
        (("ack", "bbbbbbbb"), "there is no alarm 'bbbbbbbb': `tocsin alarms --state all` lists them"),
        (
            ("snooze", "aaaaaaaa"),
            "a snooze needs exactly one end: give a duration such as 2h, --until an instant, or --off",
        ),
        (("snooze", "aaaaaaaa", "2h", "--off"), "a snooze needs exactly one end"),
        (("snooze", "aaaaaaaa", "2"), "'2' is not a duration: a bare number has no unit"),
        (
            ("alarms", "--state", "opened"),
            "--state 'opened' is unknown: use pending, open, resolved, active or all",
        ),
        (("alarms", "--severity", "hihg"), "unknown severity 'hihg', did you mean 'high'?"),
    ],
)
@pytest.mark.usefixtures("held")
def test_a_refusal_names_the_value_and_the_remedy(
    tocsin: CommandLine, words: tuple[str, ...], says: str
) -> None:
    assert says in tocsin(*words, exit_code=1).err
