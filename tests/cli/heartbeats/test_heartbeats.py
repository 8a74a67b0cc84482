"""`checkin`, `run-job`, `heartbeats` and the doctor, with a worker that runs."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine, environment_of
from tests.cli.service_processes import running_services
from tests.cli.terminal import TOCSIN
from tests.rules.lanes.lane_setup import has_stream
from tests.wait import eventually, eventually_sync
from tocsin.core.settings import Settings

RULES = """
heartbeat: {name: backup, cron: "0 2 * * *", grace: 15m}
---
heartbeat: {name: report, every: 1h, owners: [db-1, db-2]}
"""


@pytest.fixture
def services(settings: Settings) -> Iterator[None]:
    with running_services(environment_of(settings), "cdc", "worker"):
        asyncio.run(_when_made(settings))
        yield


async def _when_made(settings: Settings) -> None:
    await eventually(lambda: has_stream(settings, settings.data_stream), "the stream is made", within=60)


def test_check_ins_are_listed(
    tocsin: CommandLine, settings: Settings, services: None, tmp_path: Path
) -> None:
    assert tocsin("heartbeats").out == "no heartbeat is applied\n"
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    tocsin("apply", str(rules))
    listed = tocsin("heartbeats", "--json").json
    assert [(row["name"], row["owner"], row["status"]) for row in listed] == [
        ("backup", "backup", "new"),
        ("report", "db-1", "new"),
        ("report", "db-2", "new"),
    ]
    tocsin("checkin", "report", "start", "--owner", "db-1", "--run", "7")
    tocsin("checkin", "backup", "--exit-code", "3", "--log", "disk full")
    assert tocsin("checkin", "bakup").out == "checked in to bakup: success\n"
    job = [*TOCSIN, "run-job", "report", "--owner", "db-2", "--", "sh", "-c", "echo done; exit 0"]
    environment = {**os.environ, **{key: value or "" for key, value in environment_of(settings).items()}}
    assert subprocess.run(job, env=environment, capture_output=True, text=True, check=True).stdout == "done\n"

    def statuses() -> bool:
        found = {(row["name"], row["owner"]): row for row in tocsin("heartbeats", "--json").json}
        return [found[key]["status"] for key in sorted(found)] == ["failed", "running", "ok"]

    eventually_sync(statuses, "the check-ins are evaluated", within=60)
    table = tocsin("heartbeats", "--bad").out
    assert "backup" in table
    assert "report" not in table
    doctor = tocsin.answer("doctor").out
    assert (
        "3 expected; backup of backup is failed; check-ins that no document expects: bakup of bakup" in doctor
    )
    logs = [event["payload"].get("log") for event in tocsin("events", "--json").json]
    assert "done" in logs
    assert "disk full" in logs


def test_a_status_that_is_none_is_rejected(tocsin: CommandLine) -> None:
    assert "use start, success or fail" in tocsin("checkin", "backup", "finished", exit_code=1).err
    assert "has no exit code" in tocsin("checkin", "backup", "start", "--exit-code", "1", exit_code=1).err
