"""Reads of what suppresses alarms: by the performer, by lists, by explanations and by metrics."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta

import pytest

from rules.alarms.explain import explain_alarm
from rules.alarms.queries import find_alarm
from rules.language.cel import alarms as matchers
from rules.language.cel import compile_matcher
from rules.suppression import MatchedAlarm, Silence
from rules.suppression.operator import add_silence
from rules.suppression.reader import Suppressions, list_inhibiting, list_open
from rules.suppression.silence_store import NewSilence
from tests.clock.clock_setup import at
from tests.rules.apply.apply_setup import put
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.doctor.silence_check import silence_finding
from tocsin.metrics.database_metrics import read_database_metrics

ANN = Actor("ann", "test", at(0))
SWITCH = (
    "inhibit: {name: behind, source: 'rule == \"switch-down\"', target: 'rule == \"host-down\"', "
    "equal: [labels.site]}"
)


@pytest.fixture(autouse=True)
async def begin(connection: Connection) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))


async def open_alarm(connection: Connection, number: int, rule: str, site: str = "ams") -> uuid.UUID:
    id = uuid.UUID(str(number) * 32)
    await connection.execute(
        "insert into tocsin.alarm (id, event_rule, owner, state, severity, since, opened_at, payload,"
        " correlation_id) values (%(id)s, %(rule)s, %(owner)s, 'open', 4, %(at)s, %(at)s,"
        " jsonb_build_object('labels', jsonb_build_object('site', %(site)s::text)), %(id)s)",
        {"id": id, "rule": rule, "owner": f"host-{number}", "site": site, "at": at(0)},
    )
    return id


async def matched(connection: Connection) -> dict[uuid.UUID, MatchedAlarm]:
    return {alarm.id: alarm for alarm in await list_open(connection)}


async def test_the_suppressions_of_one_alarm_and_of_all_are_the_same(connection: Connection) -> None:
    await put(connection, SWITCH, ANN)
    await open_alarm(connection, 1, "switch-down")
    await open_alarm(connection, 2, "host-down")
    await open_alarm(connection, 3, "host-down", "fra")
    await open_alarm(connection, 4, "cpu-hot")
    silence = NewSilence('rule == "cpu-hot"', at(0), at(50), "fan swap", "ann")
    await add_silence(connection, silence, ANN)
    reader = Suppressions()
    alarms = list((await matched(connection)).values())
    one_by_one = await reader.of(connection, alarms, at(1))
    assert one_by_one == await reader.of_open(connection, at(1))
    assert {str(id)[0]: found.kind for id, found in one_by_one.items()} == {"2": "inhibit", "4": "silence"}


async def test_only_alarms_that_can_inhibit_are_read(connection: Connection) -> None:
    await put(connection, SWITCH, ANN)
    source = await open_alarm(connection, 1, "switch-down")
    target = await open_alarm(connection, 2, "host-down")
    await open_alarm(connection, 3, "switch-down", "fra")
    await open_alarm(connection, 4, "cpu-hot")
    inhibits = await Suppressions().inhibits(connection)
    found = await list_inhibiting(connection, inhibits, [(await matched(connection))[target]])
    assert [alarm.id for alarm in found] == [source]
    assert await list_inhibiting(connection, inhibits, [(await matched(connection))[source]]) == []


async def test_open_alarms_are_narrowed_by_the_literals_of_a_matcher(connection: Connection) -> None:
    await open_alarm(connection, 1, "switch-down")
    hot = await open_alarm(connection, 2, "cpu-hot")
    await open_alarm(connection, 3, "cpu-hot", "fra")
    matcher = compile_matcher('rule == "cpu-hot" && owner in ["host-2", "host-3"] && labels.site == "ams"')
    assert [alarm.id for alarm in await list_open(connection, matcher)] == [hot]


async def test_a_disabled_inhibit_suppresses_nothing(connection: Connection) -> None:
    await put(connection, SWITCH.replace("equal", "enabled: false, equal"), ANN)
    assert await Suppressions().inhibits(connection) == ()


async def test_an_explanation_names_what_holds_an_alarm(connection: Connection) -> None:
    await put(connection, SWITCH, ANN)
    await open_alarm(connection, 1, "switch-down")
    host = await open_alarm(connection, 2, "host-down")
    alarm = await find_alarm(connection, str(host))
    explained = await explain_alarm(connection, alarm, at(1))
    assert explained.sentence == (
        "host-down of 'host-2' is open, and its notifications are held by alarm 11111111 "
        "(switch-down of 'host-1'), by inhibit behind"
    )
    silence = NewSilence("true", at(0), at(50), "new switch", "ann")
    await add_silence(connection, silence, ANN)
    explained = await explain_alarm(connection, alarm, at(1))
    assert explained.facts["suppressed_by"] == f"silence:{silence.id}"
    held_by = f"held by silence {str(silence.id)[:8]} (new switch, ann, until 2026-03-02T08:00:50Z)"
    assert explained.sentence.endswith(held_by)


async def test_metrics_count_suppressed_alarms_by_their_kind(connection: Connection) -> None:
    await put(connection, SWITCH, ANN)
    await open_alarm(connection, 1, "switch-down")
    await open_alarm(connection, 2, "host-down")
    await open_alarm(connection, 3, "cpu-hot")
    await add_silence(connection, NewSilence('rule == "cpu-hot"', at(0), at(50), "", "ann"), ANN)
    await connection.execute("update tocsin.alarm set snoozed_until = %s where owner = 'host-1'", (at(9),))
    families = (await read_database_metrics(connection)).families
    suppressed = {labels[0][1]: count for _, labels, count in families["tocsin_alarms_suppressed"].samples()}
    assert suppressed == {"snooze": 1, "silence": 1, "inhibit": 1}
    assert [count for _, _, count in families["tocsin_silences_active"].samples()] == [1]


async def test_many_alarms_and_silences_let_other_tasks_run(connection: Connection) -> None:
    """The clock and the workers answer scrapes in the loop in which they work."""
    await connection.execute(
        "insert into tocsin.alarm (id, event_rule, owner, state, severity, since, payload, correlation_id)"
        " select gen_random_uuid(), 'cpu-hot', 'host-' || n, 'open', 3, tocsin.instant(), '{}', gen_random_uuid()"
        " from generate_series(1, 2000) n"
    )
    for number in range(10):
        matcher = f'owner.endsWith("{number}") && owner.startsWith("host")'
        await add_silence(connection, NewSilence(matcher, at(0), at(50), "", "ann"), ANN)
    turns = 0

    def count() -> None:
        nonlocal turns
        turns += 1
        if not is_done.is_set():
            loop.call_soon(count)

    loop, is_done = asyncio.get_running_loop(), asyncio.Event()
    alarms = await list_open(connection)
    loop.call_soon(count)
    suppressed = await Suppressions().of(connection, alarms, at(1))
    is_done.set()
    assert len(suppressed) == 2_000
    assert turns > 2_000 * 11 // 500


async def test_the_work_for_a_scrape_is_bounded(connection: Connection) -> None:
    """However many alarms are open and silences in force: a scrape never takes seconds."""
    await connection.execute(
        "insert into tocsin.alarm (id, event_rule, owner, state, severity, since, payload, correlation_id)"
        " select gen_random_uuid(), 'cpu-hot', 'host-' || n, 'open', 3, tocsin.instant(), '{}', gen_random_uuid()"
        " from generate_series(1, 2000) n"
    )
    await add_silence(connection, NewSilence('owner == "host-7"', at(0), at(50), "", "ann"), ANN)
    reader, before = Suppressions(), matchers.count_evaluations()
    assert len(await reader.of_open(connection, at(1), max_evaluations=100)) == 1
    assert matchers.count_evaluations() - before <= 1
    for number in range(10):
        await add_silence(
            connection, NewSilence(f'owner.endsWith("{number}")', at(0), at(50), "", "ann"), ANN
        )
    before = matchers.count_evaluations()
    found = await reader.of_open(connection, at(1), max_evaluations=100)
    assert 0 < len(found) < 200
    assert matchers.count_evaluations() - before < 1_000
    assert len(await reader.of_open(connection, at(1))) == 2_000


def test_a_matcher_is_evaluated_once_for_alarms_that_differ_in_nothing_it_reads() -> None:
    evaluated = matchers._matches.cache_info
    matcher = compile_matcher('labels.site == "ams" && labels["rack"] != "7" && severity >= high')
    before = evaluated().misses
    found = [
        matcher.matches(
            {
                "owner": f"host-{number}",
                "severity": 4,
                "labels": {"site": site, "rack": "1", "n": str(number)},
            }
        )
        for number in range(100)
        for site in ("ams", "fra")
    ]
    assert found == [True, False] * 100
    assert evaluated().misses - before == 2


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('labels.site == "a"', {"site"}),
        ('has(labels.site) && labels["rack"] == "7"', {"site", "rack"}),
        ('rule == "x"', set()),
        ('labels.exists(name, name == "site")', None),
        ('labels[owner] == "a"', None),
        ('size(labels) > 0 && labels.site == "a"', None),
    ],
)
def test_the_labels_that_a_matcher_reads(text: str, read: set[str] | None) -> None:
    assert compile_matcher(text)._condition.labels == read


def test_the_doctor_names_silences_that_match_nothing_or_last_long() -> None:
    alarm = MatchedAlarm(uuid.UUID(int=1), "cpu-hot")
    used = Silence(uuid.UUID(int=1), 'rule == "cpu-hot"', at(0), at(50))
    unused = Silence(uuid.UUID(int=2), 'rule == "x"', at(0), at(50))
    planned = Silence(uuid.UUID(int=3), 'rule == "x"', at(0), at(50), source="maintenance:m")
    long = Silence(uuid.UUID(int=4), "true", at(0), at(0) + timedelta(days=30))
    assert silence_finding([], [alarm], at(1)).state == "ok"
    assert silence_finding([used, planned], [alarm], at(1)).state == "ok"
    found = silence_finding([used, unused, long], [alarm], at(1))
    assert found.state == "info"
    assert found.text == (
        "3 in force, 1 open alarms match; 1 match nothing (00000000); 1 last for more than 7 days (00000000)"
    )
