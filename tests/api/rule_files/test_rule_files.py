"""Rule files over HTTP have the words of the command line, and cannot hurt the API."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from tests.api.running_api import RunningApi
from tests.sql import all_rows
from tocsin.api.rule_files import command, routes
from tocsin.core.db import Connection

RULES = """
event_rule: {name: too-hot, datapoint: temperature, fire: 'value > 65.0', severity: high}
---
schedule: {name: digest, cron: '0 8 * * *', tz: Europe/London}
"""
TESTS = """
test:
  name: opens
  rules: [RULES]
  start: 2026-03-28T23:00:00Z
  given:
  - {series: temperature, owner: plant-7, every: 1m, values: 70}
  until: 5m
  expect:
  - {at: 0s, opened: too-hot}
"""


def files(text: str = RULES, name: str = "rules.yaml") -> dict[str, Any]:
    return {"files": [{"name": name, "text": text}]}


async def test_a_check_counts_documents_and_a_problem_has_its_place(api: RunningApi) -> None:
    ann = await api.client("author:*")
    answer = await ann.post("/v1/rules:check", files())
    assert (answer.status, answer.json["documents"]) == (200, {"event_rule": 1, "schedule": 1})
    wrong = await ann.post("/v1/rules:check", files(RULES.replace("cron", "crn"), "team/rules.yaml"))
    (error,) = wrong.problem["errors"]
    assert (wrong.status, error["file"], error["line"]) == (422, "team/rules.yaml", 4)
    assert error["detail"] == "unknown key 'crn' in schedule 'digest', did you mean 'cron'?"


async def test_a_plan_changes_nothing_and_an_apply_has_the_caller_in_its_audit(
    api: RunningApi, connection: Connection
) -> None:
    ann = await api.client("approver:*", name="ann")
    plan = await ann.post("/v1/rules:plan", files())
    assert [change["outcome"] for change in plan.json["changes"]] == ["added", "added"]
    assert await all_rows(connection, "select * from tocsin.rule_version") == []
    applied = await ann.post("/v1/rules:apply", files(), headers={"if-match": plan.headers["etag"]})
    assert (applied.status, applied.json["counts"]) == (200, {"added": 2})
    assert applied.headers["etag"] == (await ann.get("/v1/rules:version")).headers["etag"]
    rows = await all_rows(connection, "select distinct who, via from tocsin.audit where kind = 'schedule'")
    assert rows == [{"who": "ann", "via": "api"}]


async def test_an_apply_needs_the_version_that_it_was_planned_for(api: RunningApi) -> None:
    ann = await api.client("approver:*")
    assert (await ann.post("/v1/rules:apply", files())).status == 428
    first = (await ann.get("/v1/rules:version")).headers["etag"]
    assert (await ann.post("/v1/rules:apply", files(), headers={"if-match": first})).status == 200
    other = files("schedule: {name: other, every: 1h}")
    assert (await ann.post("/v1/rules:apply", other, headers={"if-match": first})).status == 412
    again = await ann.post("/v1/rules:apply", files(), headers={"if-match": first})
    assert (again.status, again.json["changes"]) == (200, [])


async def test_nothing_is_removed_without_prune(api: RunningApi) -> None:
    ann = await api.client("approver:*")
    anything = {"if-match": "*"}
    await ann.post("/v1/rules:apply", files(), headers=anything)
    one = files("schedule: {name: digest, cron: '0 8 * * *', tz: Europe/London}")
    assert (await ann.post("/v1/rules:apply", one, headers=anything)).json["counts"] == {"unchanged": 1}
    pruned = await ann.post("/v1/rules:apply", {**one, "prune": True}, headers=anything)
    assert pruned.json["counts"] == {"unchanged": 1, "removed": 1}


async def test_rule_tests_run_with_the_files_of_the_request(api: RunningApi) -> None:
    ann = await api.client("author:*")
    sent = [
        {"name": "rules.yaml", "text": RULES},
        {"name": "tests/opens.yaml", "text": TESTS.replace("RULES", "../rules.yaml")},
    ]
    answer = await ann.post("/v1/rules:test", {"files": sent, "tests": ["tests/opens.yaml"]})
    assert (answer.status, [test["passed"] for test in answer.json]) == (200, [True]), answer


@pytest.mark.parametrize("path", ["/etc/passwd", "../../../../etc/passwd"])
async def test_a_rule_test_reads_no_file_of_the_server(api: RunningApi, path: str) -> None:
    ann = await api.client("author:*")
    answer = await ann.post("/v1/rules:test", files(TESTS.replace("RULES", path), "tests.yaml"))
    assert (answer.status, "names the rule file" in answer.problem["detail"]) == (409, True), answer


async def test_a_backtest_replays_the_recorded_data(api: RunningApi) -> None:
    ann = await api.client("author:*")
    answer = await ann.post("/v1/rules:backtest", {**files(), "since": "1h"})
    assert answer.status == 200, answer


@pytest.mark.parametrize(
    "name", ["../x.yaml", "/etc/x.yaml", "x.txt", "a/../x.yaml", "-x.yaml/..", ".x.yaml"]
)
async def test_a_name_outside_of_the_folder_is_rejected(api: RunningApi, name: str) -> None:
    ann = await api.client("author:*")
    assert (await ann.post("/v1/rules:check", files(name=name))).status == 422


@pytest.mark.parametrize("operation", ["check", "plan", "apply", "backtest"])
async def test_a_name_that_looks_like_an_option_is_a_name(api: RunningApi, operation: str) -> None:
    ann = await api.client("approver:*", "author:*")
    headers = {"if-match": "*"} if operation == "apply" else {}
    answer = await ann.post(f"/v1/rules:{operation}", files(name="--help/-v/rules.yaml"), headers=headers)
    assert answer.status == 200, answer


async def test_a_test_file_that_looks_like_an_option_is_a_file(api: RunningApi) -> None:
    ann = await api.client("author:*")
    both = {"files": [*files()["files"], *files(TESTS.replace("RULES", "rules.yaml"), "-v.yaml")["files"]]}
    answer = await ann.post("/v1/rules:test", {**both, "tests": ["-v.yaml"], "only": "opens"})
    assert answer.status == 200, answer


@pytest.mark.parametrize("operation", ["check", "plan", "apply", "test", "backtest"])
async def test_only_the_roles_of_the_policy_may(api: RunningApi, operation: str) -> None:
    viewer, author = await api.client("viewer:*"), await api.client("author:*")
    assert (await viewer.post(f"/v1/rules:{operation}", files())).status == 403
    assert (await author.post(f"/v1/rules:{operation}", files())).status == (
        403 if operation == "apply" else 200
    )


async def test_files_that_take_too_long_are_ended_and_the_api_answers_meanwhile(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "_WITHIN_S", 0.2)
    monkeypatch.setattr(command, "_MEMORY_BYTES", 4 * 1024**3)
    ann = await api.client("author:*")
    many = "\n---\n".join(f"schedule: {{name: s{n}, cron: '{n % 60} 8 * * *'}}" for n in range(5_000))
    checking = asyncio.create_task(ann.post("/v1/rules:check", files(many)))
    began_s = time.monotonic()
    assert (await ann.get("/v1/me")).status == 200
    assert time.monotonic() - began_s < 30
    answer = await checking
    assert (answer.status, answer.problem["detail"]) == (408, "'check' took longer than 0.2 s and was ended")


async def test_a_check_has_no_address_of_a_server(api: RunningApi) -> None:
    environment = command.environment(api.settings, "check")
    assert not {"TOCSIN_POSTGRES", "TOCSIN_NATS"} & set(environment)
    assert "tocsin_api" in command.environment(api.settings, "plan")["TOCSIN_POSTGRES"]


async def test_a_client_that_accepts_events_sees_the_progress_and_then_the_result(api: RunningApi) -> None:
    ann = await api.client("author:*")
    text = "\n---\n".join(TESTS.replace("opens", f"opens {n}") for n in range(4)).replace(
        "RULES", "rules.yaml"
    )
    sent = [{"name": "rules.yaml", "text": RULES}, {"name": "tests.yaml", "text": text}]
    accept = {"accept": "text/event-stream"}
    answer = await ann.post("/v1/rules:test", {"files": sent, "tests": ["tests.yaml"]}, headers=accept)
    assert answer.headers["content-type"].startswith("text/event-stream"), answer
    events = [part.split("\n") for part in answer.text.strip().split("\n\n")]
    kinds = [event for event, _ in events]
    assert (kinds[0], kinds[-1]) == ("event: progress", "event: result")
    percents = [json.loads(data[6:])["percent"] for kind, data in events if kind == "event: progress"]
    assert percents == sorted(percents)
    assert [test["passed"] for test in json.loads(events[-1][1][6:])] == [True] * 4
    wrong = await ann.post("/v1/rules:backtest", {**files("x: 1"), "since": "1h"}, headers=accept)
    last = wrong.text.strip().split("\n\n")[-1].split("\n")
    assert (last[0], json.loads(last[1][6:])["status"]) == ("event: problem", 422)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_a_client_that_leaves_ends_the_process_of_its_request(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    monkeypatch.setattr(command, "_PROGRAM", "import time; time.sleep(600)")
    began, ended = asyncio.Event(), asyncio.Event()
    limit, kill = command._limit, command._kill

    def begin(process: Any, within_s: float) -> None:
        limit(process, within_s)
        began.set()

    async def end(process: Any) -> None:
        await kill(process)
        ended.set()

    monkeypatch.setattr(command, "_limit", begin)
    monkeypatch.setattr(command, "_kill", end)
    ann = await api.client("author:*")
    sent = asyncio.create_task(ann.post("/v1/rules:test", files(), headers={"accept": accept}))
    async with asyncio.timeout(60):
        await began.wait()
        sent.cancel()
        await ended.wait()
