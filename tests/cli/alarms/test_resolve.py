"""`tocsin resolve`: of one alarm, of several, of all that match, and what it refuses."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from psycopg.types.json import Jsonb

from rules.engine.effects import Alarm
from rules.engine.state import RuleState
from tests.cdc.published_records import with_long_timeouts
from tests.cli.conftest import CommandLine
from tests.clock.alarms import hold_alarm, read_until
from tests.clock.clock_setup import at
from tocsin.core.db import connect
from tocsin.core.settings import Settings

AMS = 'labels.site == "ams"'


@pytest.fixture
def alarms(settings: Settings) -> None:
    """Three open alarms with the states of their rule: two of the site ams, one of fra."""

    async def put() -> None:
        connection = await connect(with_long_timeouts(settings), "test")
        await read_until(connection, at(60))
        for number, site in enumerate(("ams", "ams", "fra"), 1):
            alarm = uuid.UUID(str(number) * 32)
            await hold_alarm(connection, "open", alarm=alarm, owner=f"host-{number}")
            await connection.execute(
                "update tocsin.alarm set payload = jsonb_build_object('labels',"
                " jsonb_build_object('site', %s::text)) where id = %s",
                (site, alarm),
            )
            stored = Alarm(alarm, "dsp-hot", f"host-{number}", 4, at(0), {})
            state = RuleState("open", stored).to_json()
            await connection.execute(
                "update tocsin.rule_state set state = %s where owner = %s",
                (Jsonb(state), f"host-{number}"),
            )
        await connection.close()

    asyncio.run(put())


def states(tocsin: CommandLine) -> dict[str, str]:
    return {row["owner"]: row["state"] for row in tocsin("alarms", "--state", "all", "--json").json}


@pytest.mark.usefixtures("alarms")
def test_an_alarm_is_resolved_with_its_event_and_its_audit_row(tocsin: CommandLine) -> None:
    done = tocsin("resolve", "1111", "--note", "the host is gone", "--by", "ann")
    assert done.out == "resolved alarm 11111111 (dsp-hot of 'host-1'), seq 1\n"
    assert states(tocsin) == {"host-1": "resolved", "host-2": "open", "host-3": "open"}
    (event,) = tocsin("events", "--json").json
    assert (event["type"], event["origin"], event["owner"]) == ("alarm-resolved", "caused", "host-1")
    assert event["payload"]["note"] == "the host is gone"
    (change,) = tocsin("audit", "--json").json
    assert (change["verb"], change["who"]) == ("resolve", "ann")


@pytest.mark.usefixtures("alarms")
def test_an_alarm_is_resolved_once(tocsin: CommandLine) -> None:
    first = tocsin("resolve", "1111", "--json").json
    assert first == {"alarm": str(uuid.UUID("1" * 32)), "changed": True, "seq": 1}
    again = tocsin("resolve", "1111", exit_code=1)
    assert again.out == ""
    assert "11111111" in again.err
    assert "resolved" in again.err
    assert len(tocsin("events", "--json").json) == 1


@pytest.mark.usefixtures("alarms")
def test_all_alarms_that_match_are_resolved_and_only_after_a_question(tocsin: CommandLine) -> None:
    declined = tocsin("resolve", "--where", AMS, exit_code=1)
    assert "2 open alarms match now:" in declined.err
    assert "resolve them?" in declined.err
    assert set(states(tocsin).values()) == {"open"}
    done = tocsin("resolve", "--where", AMS, "--yes", "--note", "moved")
    assert sorted(done.lines[:2]) == [
        "resolved alarm 11111111 (dsp-hot of 'host-1'), seq 1",
        "resolved alarm 22222222 (dsp-hot of 'host-2'), seq 2",
    ]
    assert states(tocsin) == {"host-1": "resolved", "host-2": "resolved", "host-3": "open"}
    assert tocsin("resolve", "--where", AMS, "--yes", "--json").json["count"] == 0


@pytest.mark.usefixtures("alarms")
def test_an_alarm_that_cannot_be_resolved_does_not_stop_the_others(tocsin: CommandLine) -> None:
    tocsin("resolve", "2222")
    done = tocsin("resolve", "2222", "3333", exit_code=1)
    assert "resolved alarm 33333333" in done.out
    assert "22222222" in done.err
    assert states(tocsin) == {"host-1": "open", "host-2": "resolved", "host-3": "resolved"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name the alarms by their ids, or by --where"),
        (("1111", "--where", AMS), "ids and --where exclude each other"),
        (("xyz",), "'xyz' is not the id of an alarm"),
        (("bbbbbbbb",), "there is no alarm 'bbbbbbbb'"),
        (("--where", "site == 'ams'", "--yes"), "write labels.site if it is a label"),
        (("--where", "labels.site ==", "--yes"), "--where: "),
    ],
)
@pytest.mark.usefixtures("alarms")
def test_a_refusal_names_the_value_and_changes_nothing(
    tocsin: CommandLine, words: tuple[str, ...], says: str
) -> None:
    assert says in tocsin("resolve", *words, exit_code=1).err
    assert set(states(tocsin).values()) == {"open"}
