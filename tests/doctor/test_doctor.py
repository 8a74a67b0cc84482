"""`tocsin doctor` against servers in several states."""

from __future__ import annotations

import os
import re
import signal
import subprocess

import psycopg

from tests.cli.conftest import Answer, CommandLine, environment_of
from tests.cli.terminal import TOCSIN
from tests.conftest import with_database
from tests.wait import eventually_sync
from tocsin.core.settings import Settings


def _fix_time(settings: Settings) -> None:
    """Take the time of the database from the server again, as outside of tests."""
    with psycopg.connect(settings.postgres) as connection:
        connection.execute(
            "create or replace function tocsin.instant() returns timestamptz"
            " language sql volatile parallel safe as 'select clock_timestamp()'"
        )


def test_doctor_names_missing_services_with_a_remedy(tocsin: CommandLine, settings: Settings) -> None:
    _fix_time(settings)
    tocsin("schedule", "add", "one", "--every", "1h")
    answer = tocsin("doctor", exit_code=1)
    found = {check["subject"]: check for check in tocsin("doctor", "--json", exit_code=1).json}
    assert {name for name, check in found.items() if check["state"] == "red"} == {
        *("clock", "cdc", "lane record", "lane data", "worker perform", "worker ingest"),
    }
    assert all(check["remedy"] for check in found.values() if check["state"] == "red")
    assert "-> start one with `tocsin run clock`, or `tocsin up`" in answer.out
    for subject in ("tocsin", "postgres", "migrations", "clocks", "nats", "timers"):
        assert found[subject]["state"] == "ok", found[subject]
    assert found["log"]["state"] == "info"


def test_doctor_names_leader_epoch_and_lag_while_services_run(
    settings: Settings, tocsin: CommandLine
) -> None:
    _fix_time(settings)
    tocsin("schedule", "add", "now", "--in", "1s")
    command = [*TOCSIN, "run"]
    environment = {**os.environ, **{key: value or "" for key, value in environment_of(settings).items()}}
    roles = ("clock", "cdc", "worker")
    services = [
        subprocess.Popen([*command, role], env=environment, stderr=subprocess.PIPE, text=True)
        for role in roles
    ]
    try:
        answers: list[Answer] = []
        log = f"head at seq 1, stream '{settings.namespace}' at 1, lag 0"

        def healthy() -> bool:
            answers.append(tocsin.answer("doctor"))
            return answers[-1].exit_code == 0 and log in answers[-1].out

        eventually_sync(healthy, "the doctor finds nothing wrong after the fire", within=60)
        lines = answers[-1].lines
        clock = next(line for line in lines if " clock " in line)
        assert re.search(rf"led by .*/{services[0].pid}/.*, epoch [0-9]+ since ", clock)
        assert f"/{services[1].pid}/" in next(line for line in lines if " cdc " in line)
    finally:
        for service in services:
            service.send_signal(signal.SIGTERM)
        logs = [service.communicate(timeout=30)[1] for service in services]
    assert [service.returncode for service in services] == [0, 0, 0]
    assert "Traceback" not in "".join(logs)


def test_doctor_continues_when_no_server_answers(alone: CommandLine) -> None:
    found = {check["subject"]: check for check in alone("doctor", "--json", exit_code=1).json}
    assert found["postgres"]["state"] == found["nats"]["state"] == "red"
    assert found["postgres"]["remedy"].startswith("set TOCSIN_POSTGRES")
    assert found["tocsin"]["state"] == "ok"


def test_doctor_reports_an_unmigrated_database(tocsin: CommandLine, settings: Settings) -> None:
    tocsin.environment["TOCSIN_POSTGRES"] = with_database(settings.postgres, "template1")
    found = {check["subject"]: check for check in tocsin("doctor", "--json", exit_code=1).json}
    assert (found["migrations"]["state"], found["migrations"]["remedy"]) == ("red", "run `tocsin migrate`")


def test_doctor_finds_active_schedules_that_nothing_fires(settings: Settings, tocsin: CommandLine) -> None:
    for name in ("lost", "kept"):
        tocsin("schedule", "add", name, "--every", "1h")
    with psycopg.connect(settings.postgres) as connection:
        connection.execute(
            "delete from tocsin.timer t using tocsin.schedule s where t.ref = s.id::text and s.name = 'lost'"
        )

    def red() -> list[str]:
        found = tocsin("doctor", "--json", exit_code=1).json
        return [check["text"] for check in found if check["subject"] == "schedules"]

    assert red() == ["1 active without a timer, so they never fire: lost"]
    tocsin("schedule", "pause", "lost")
    tocsin("schedule", "resume", "lost")
    assert red() == []
