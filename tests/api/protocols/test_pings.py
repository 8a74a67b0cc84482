"""Pings of healthchecks: curl and a client of PyPI check in, and no answer tells of other heartbeats."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import uuid
from typing import Any

import pytest
from healthchecks_decorator import healthcheck

from rules.alarms.heartbeats import list_heartbeats
from tests.api.protocols.stored import stored_events, stored_series
from tests.api.running_api import RunningApi, running_api
from tests.rules.apply.apply_setup import put
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.api.protocols import ping_rates
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

RULES = """
heartbeat: {name: backup, every: 1d}
---
heartbeat: {name: report, every: 1d, owners: [db-1, db-2]}
"""


async def curl(*arguments: str) -> tuple[str, int]:
    """The body and the status."""
    command = ["curl", "-sS", "-m", "60", "--retry", "3", "-w", "\n%{http_code}", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    output, _ = await process.communicate()
    body, _, status = output.decode().rpartition("\n")
    return body, int(status)


async def payloads(connection: Connection, kind: str, count: int) -> list[dict[str, Any]]:
    return [event["payload"] for event in await stored_events(connection, f"heartbeat-{kind}", count)]


async def test_curl_starts_logs_fails_and_succeeds(instance: RunningApi, connection: Connection) -> None:
    await put(connection, RULES)
    _, token = await instance.mint("sender:backup")
    url, run = f"{instance.url}/ping/{token}", str(uuid.uuid4())
    assert await curl(f"{url}/start?rid={run}") == ("OK", 200)
    assert await curl("--data-raw", "copied 3 files", f"{url}/log") == ("OK", 200)
    assert await curl("--data-raw", "disk full", f"{url}/3?rid={run}") == ("OK", 200)
    assert await curl("-I", f"{url}", "-o", "/dev/null") == ("", 200)
    (failed,) = await payloads(connection, "fail", 1)
    assert (failed["exit_code"], failed["log"], failed["run"]) == (3, "disk full", run)
    (started,) = await payloads(connection, "start", 1)
    assert started["run"] == run
    (succeeded,) = await payloads(connection, "success", 1)
    assert succeeded == {"heartbeat": "backup", "status": "success"}
    series = await stored_series(connection, 2)
    assert series["backup", "heartbeat.backup.log"]["value"] == "disk full"


async def test_the_time_between_start_and_end_of_a_run_is_its_duration(
    instance: RunningApi, connection: Connection
) -> None:
    await put(connection, RULES)
    pinging = await instance.with_token(None)
    _, token = await instance.mint("sender:backup")
    for path in ("/start", ""):
        answer = await pinging.get(f"/ping/{token}{path}?rid={uuid.UUID(int=5)}")
        assert (answer.text, answer.headers["ping-body-limit"]) == ("OK", "10000")
    await payloads(connection, "success", 1)
    _, (row,) = await list_heartbeats(connection, name="backup")
    assert row.status == "ok"
    assert row.last_duration_s is not None
    assert 0 <= row.last_duration_s < 60


async def test_a_client_of_pypi_checks_in_by_key_and_slug(
    instance: RunningApi, connection: Connection
) -> None:
    await put(connection, RULES)
    _, token = await instance.mint("sender:*")

    @healthcheck(url=f"{instance.url}/ping/{token}/backup", send_start=True, send_diagnostics=True)
    def job(result: dict[str, int] | None) -> dict[str, int]:
        if result is None:
            raise RuntimeError("the disk is full")
        return result

    await asyncio.to_thread(job, {"files": 3})
    (succeeded,) = await payloads(connection, "success", 1)
    assert succeeded["log"] == "files=3"
    with pytest.raises(RuntimeError):
        await asyncio.to_thread(job, None)
    await payloads(connection, "fail", 1)
    assert len(await payloads(connection, "start", 2)) == 2


async def test_a_request_that_is_repeated_is_one_check_in(
    instance: RunningApi, connection: Connection
) -> None:
    await put(connection, RULES)
    pinging = await instance.with_token(None)
    _, token = await instance.mint("sender:backup")
    for _ in range(3):
        assert (await pinging.post(f"/ping/{token}?rid={uuid.UUID(int=5)}")).status == 200
    assert (await pinging.post(f"/ping/{token}/start")).status == 200
    await payloads(connection, "start", 1)
    assert len(await payloads(connection, "success", 1)) == 1


async def test_what_a_token_may_not_ping_does_not_exist(api: RunningApi, connection: Connection) -> None:
    await put(connection, RULES)
    pinging = await api.with_token(None)
    _, backup = await api.mint("sender:backup")
    _, report = await api.mint("sender:db-*")
    _, viewer = await api.mint("viewer:*")
    for path in (
        "/ping/none",
        f"/ping/{viewer}",
        f"/ping/{viewer}/backup",
        f"/ping/{backup}/report",
        f"/ping/{report}/backup",
        f"/ping/{backup}/none?create=1",
        f"/ping/{uuid.uuid4()!s}/start",
        f"/ping/{'x' * 3000}",
    ):
        answer = await pinging.get(path)
        assert (answer.status, answer.text) == (404, "not found"), path
    for path in (f"/ping/{report}", f"/ping/{report}/report"):
        answer = await pinging.get(path)
        assert (answer.status, answer.text) == (409, "ambiguous slug"), path
    assert (await pinging.get(f"/ping/{backup}/256")).text == "invalid url format"
    assert (await pinging.get(f"/ping/{backup}?rid=1")).text == "invalid uuid format"
    assert (await pinging.get(f"/ping/{backup}/backup/stop")).status == 400
    assert (await pinging.delete(f"/ping/{backup}")).status == 405


async def test_one_of_several_owners_is_named(instance: RunningApi, connection: Connection) -> None:
    await put(connection, RULES)
    pinging = await instance.with_token(None)
    _, token = await instance.mint("sender:db-*")
    assert (await pinging.get(f"/ping/{token}/report?owner=db-2")).status == 200
    (event,) = await stored_events(connection, "heartbeat-success", 1)
    assert event["owner"] == "db-2"


async def test_a_ping_creates_a_heartbeat_where_it_is_allowed(
    settings: Settings, connection: Connection
) -> None:
    allowed = settings.model_copy(update={"api_ping_create": 1})
    async with running_api(allowed) as api:
        pinging = await api.with_token(None)
        _, token = await api.mint("sender:job-*", name="k8s")
        assert (await pinging.get(f"/ping/{token}/mine?create=1")).status == 404
        assert (await pinging.get(f"/ping/{token}/job-1")).status == 404
        await pinging.get(f"/ping/{token}/job-1?create=1")
        assert (await pinging.get(f"/ping/{token}/job-2?create=1")).status == 404
    (version,) = await all_rows(
        connection, "select name, document from tocsin.rule_version where kind = 'heartbeat'"
    )
    assert (version["name"], version["document"]["every"]) == ("job-1", "1d")
    (row,) = await all_rows(connection, "select who, via from tocsin.audit where kind = 'heartbeat'")
    assert (row["who"], row["via"]) == ("k8s", "api")


async def test_a_client_in_a_loop_is_limited_and_the_others_are_not(
    api: RunningApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ping_rates, "MAX_PINGS", 0)
    await put(connection, RULES)
    pinging = await api.with_token(None)
    _, token = await api.mint("sender:backup")
    answer = await pinging.get(f"/ping/{token}")
    assert (answer.status, answer.text) == (429, "rate limited")


async def test_a_token_in_a_ping_is_in_no_log(
    api: RunningApi,
    connection: Connection,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    await put(connection, RULES)
    pinging = await api.with_token(None)
    _, token = await api.mint("sender:backup")
    # No worker runs, so no stream exists: the API logs that it cannot store the check-in.
    assert (await pinging.get(f"/ping/{token}")).status == 503
    logged = caplog.text + "".join(capfd.readouterr())
    assert token[12:] not in logged


async def test_a_body_of_any_bytes_is_kept_within_bounds(
    instance: RunningApi, connection: Connection
) -> None:
    await put(connection, RULES)
    pinging = await instance.with_token(None)
    _, token = await instance.mint("sender:backup")
    answer = await pinging.request("POST", f"/ping/{token}/fail", data=b"\0\xff" * 100_000)
    assert answer.status == 200
    (failed,) = await payloads(connection, "fail", 1)
    assert 0 < len(failed["log"]) <= 4096
    too_large = await pinging.request("POST", f"/ping/{token}", data=b"x" * 1_000_001)
    assert too_large.status == 413

    async def is_stored() -> bool:
        rows = await all_rows(connection, "select key from tocsin.current_value")
        return {row["key"] for row in rows} == {"heartbeat.backup", "heartbeat.backup.log"}

    await eventually(is_stored, "the check-in and its output are stored")
