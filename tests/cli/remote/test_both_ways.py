"""Each command prints the same and ends the same, with the database and over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.api.recorded import Recorded, put_alarm, put_run, put_series, record
from tests.api.running_api import RunningApi
from tests.cli.remote.conftest import BothWays
from tocsin.core.db import Connection

RULES = """
heartbeat: {name: nightly-backup, every: 1h, grace: 10m}
---
event_rule: {name: too-hot, datapoint: temperature, fire: 'value > 65.0', severity: high, notify: [ops]}
---
event_rule: {name: pump-failing, alarms: {all_of: [too-hot]}, severity: high}
---
channel: {name: ops, slack: {url: {secret: slack-url}}}
---
action: {name: page, log: {message: x}}
---
system: {name: line, members: [{owner: mill-1, type: temperature}]}
---
datapoint_type: {name: temperature, key: dsp.temperature, interval: 1m}
"""
READS = [
    "alarms",
    "alarms --state all --severity medium --json",
    "alarms --state resolved",
    "alarms --state wrong",
    "alarms --owner unknown",
    "schedules",
    "schedules --json",
    "schedules --status wrong",
    "schedule show nightly-plant-7 --owner plant-7",
    "schedule show nightly-plant-7 --owner plant-7 --json",
    "schedule show none",
    "upcoming --count 3",
    "upcoming --owner plant-7 --json",
    "timers",
    "timers --json",
    "timers --kind wrong",
    "events",
    "events --json",
    "events --since-seq 0 --limit 2 --json",
    "events --since 2h --owner plant-7",
    "events --origin wrong",
    "actions",
    "actions --state dead --json",
    "actions --state completed",
    "actions show RUN",
    "actions show zz",
    "actions show 00000000",
    "history",
    "stats",
    "stats --json",
    "explain nightly-plant-7 --owner plant-7",
    "explain nightly-plant-7 --owner plant-7 --json",
    "explain nightly-plant-7 --owner plant-7 --at 2031-03-07T03:30Z",
    "explain none",
    "explain ALARM",
    "explain ALARM --json",
    "explain pump-failing --owner plant-7",
    "audit",
    "audit --json",
    "audit nothing",
    "series",
    "series --json",
    "series --owner unknown",
    "health",
    "health --json",
    "heartbeats",
    "heartbeats --json",
    "heartbeats none",
    "notifications",
    "notifications --state wrong",
    "rules",
    "rules --json",
    "rules --yaml",
    "rules event_rule too-hot",
    "rules event_rule none",
    "rules wrong",
    "channels",
    "channels --json",
    "channels test none",
    "silence list",
    "silence list --json",
    "silence expire 00000000",
    "token list --json",
    "ack 00000000",
    "ack zz",
    "ack",
    "snooze 00000000 1h",
    "resolve 00000000",
    "timers retry schedule-tick none",
    "actions retry 00000000",
    "token revoke none",
    "alarms --limit 0",
]


PARTS = 10
"""Each test has a part of them: a command takes seconds on a busy machine."""


@pytest.fixture
async def of(api: RunningApi, connection: Connection, tmp_path: Path, both: BothWays) -> Recorded:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    applied = await both.local("apply", str(rules))
    assert applied.exit_code == 0, applied.out + applied.err
    await put_alarm(connection, "mill-1", severity=2)
    await put_alarm(connection, "mill-2", severity=4, state="resolved")
    run = await put_run(connection, "mill-1", state="running")
    # Runs that started at the same instant have no order.
    await connection.execute(
        "update tocsin.action set started_at = started_at + interval '1 minute' where id = %s", (run,)
    )
    await put_series(connection, "mill-1", "dsp.temperature")
    added = await both.local("silence", "add", "--where", 'owner == "mill-1"', "--for", "2h", "--yes")
    assert added.exit_code == 0, added.err
    return await record(api, connection, "plant-7")


@pytest.mark.parametrize("part", range(PARTS))
async def test_what_is_read_is_the_same_over_http(both: BothWays, of: Recorded, part: int) -> None:
    differences: list[Any] = []
    for command in READS[part::PARTS]:
        words = [{"ALARM": str(of.alarm), "RUN": str(of.run)}.get(word, word) for word in command.split()]
        try:
            await both.compare(*words)
        except AssertionError as difference:
            differences.append(str(difference))
    assert not differences, "\n\n".join(differences)


async def test_a_run_is_shown_over_http_without_its_stored_state(both: BothWays, of: Recorded) -> None:
    shown = ("actions", "show", str(of.run), "--json")
    local, remote = (await both.local(*shown)).json, (await both.remote(*shown)).json
    assert remote == {name: local[name] for name in remote}
    assert local.keys() - remote.keys() == {"document", "active", "answers", "group_key"}


async def test_alarms_are_changed_over_http_by_the_token(
    both: BothWays, of: Recorded, connection: Connection
) -> None:
    acked = await both.remote("ack", str(of.alarm)[:8], "--note", "fan")
    assert acked.out.startswith(f"acknowledged alarm {str(of.alarm)[:8]} (hot of 'plant-7'), seq "), acked.err
    again = await both.compare("ack", str(of.alarm))
    assert "was already acknowledged by ann at " in again.out
    snoozed = await both.remote("snooze", str(of.alarm), "2h", "--json")
    assert (snoozed.exit_code, snoozed.json["alarm"]) == (0, str(of.alarm))
    many = await both.remote("ack", "--where", 'owner == "mill-1"', "--yes")
    assert many.out.splitlines()[-1] == "acknowledged 1 of 1 alarms"
    # Alarms of rows that no worker wrote cannot be resolved: the refusal is the same.
    assert (await both.compare("resolve", str(of.alarm))).exit_code == 1
    audit = await connection.execute(
        "select distinct via from tocsin.audit where who = 'ann' and name = 'hot'"
    )
    assert [tuple(row) for row in await audit.fetchall()] == [("api",)]


async def test_a_silence_is_added_and_ended_over_http(both: BothWays, of: Recorded) -> None:
    added = await both.remote("silence", "add", "--where", "true", "--for", "1h", "--yes", "--json")
    assert added.exit_code == 0, added.err
    id = added.json["id"] if "id" in added.json else added.json["silence"]
    listed = await both.compare("silence", "list")
    assert str(id)[:8] in listed.out
    assert (await both.remote("silence", "expire", str(id)[:8])).exit_code == 0
    assert str(id)[:8] not in (await both.remote("silence", "list")).out


async def test_a_schedule_lives_its_life_over_http(both: BothWays, of: Recorded) -> None:
    added = await both.remote("schedule", "add", "digest", "--cron", "0 8 * * *", "--owner", "billing")
    assert added.out.startswith("added schedule billing/digest"), added.err
    words = ("schedule", "add", "digest", "--cron", "0 8 * * *", "--owner", "billing")
    assert (await both.compare(*words)).out.startswith("unchanged schedule billing/digest (deduped")
    replaced = await both.remote(*words[:4], "0 9 * * *", *words[5:], "--replace")
    assert replaced.out.startswith("changed schedule"), replaced.out + replaced.err
    stale = await both.remote("schedule", "pause", "digest", "--owner", "billing", "--if-generation", "1")
    assert stale.exit_code == 1
    for verb in ("pause", "resume", "run", "cancel"):
        done = await both.remote("schedule", verb, "digest", "--owner", "billing")
        assert done.exit_code == 0, done.err
    shown = await both.compare("schedule", "show", "digest", "--owner", "billing")
    assert "cancelled" in shown.out


async def test_a_token_is_added_and_revoked_over_http(both: BothWays) -> None:
    added = await both.remote("token", "add", "ci", "--grant", "viewer:*", "--json")
    assert added.json["token"].startswith("tocsin_api_")
    assert "ci" in (await both.compare("token", "list")).out
    assert (await both.remote("token", "revoke", "ci")).out == "revoked the token of 'ci'\n"
    wrong = await both.compare("token", "add", "x", "--grant", "root:*")
    assert wrong.exit_code == 1


async def test_a_run_is_cancelled_over_http(both: BothWays, connection: Connection) -> None:
    run = await put_run(connection, "plant-7", state="running")
    done = await both.remote("actions", "cancel", str(run)[:8])
    assert done.out == f"cancelled run {str(run)[:8]} of action 'page'\n", done.err


@pytest.mark.parametrize(
    ("environment", "exit_code", "message"),
    [
        ({"TOCSIN_TOKEN": None}, 2, "TOCSIN_URL is set, and TOCSIN_TOKEN is not"),
        ({"TOCSIN_TOKEN": "tocsin_api_wrong"}, 1, "the token is not valid"),
        ({"TOCSIN_URL": "http://127.0.0.1:1"}, 2, "the API at http://127.0.0.1:1 did not answer"),
        ({"TOCSIN_URL": "http://tocsin.example"}, 2, "would send the token in clear text"),
        ({"TOCSIN_URL": "tocsin.example"}, 2, "is not an address"),
        ({"TOCSIN_URL": "https://ann:pw@tocsin.example"}, 2, "TOCSIN_URL has credentials"),
    ],
)
async def test_a_wrong_address_or_token_is_named(
    both: BothWays, environment: dict[str, str | None], exit_code: int, message: str
) -> None:
    both._remote.environment.update(environment)
    answer = await both.remote("alarms")
    assert (answer.exit_code, message in answer.err) == (exit_code, True), answer.err


async def test_a_caller_without_the_grant_is_refused_with_exit_code_1(
    both: BothWays, api: RunningApi, of: Recorded
) -> None:
    _, token = await api.mint("viewer:plant-*")
    both._remote.environment["TOCSIN_TOKEN"] = token
    assert "mill-1" not in (await both.remote("alarms", "--state", "all")).out
    refused = await both.remote("ack", str(of.alarm))
    assert (refused.exit_code, "may not acknowledge-alarm" in refused.err) == (1, True)


async def test_a_command_that_needs_the_servers_is_refused(both: BothWays) -> None:
    for words in (("prune",), ("cdc", "status"), ("schedule", "cancel", "--all", "--yes")):
        answer = await both.remote(*words)
        assert (answer.exit_code, "does not work over HTTP" in answer.err) == (1, True), (words, answer.err)
