"""Resources that are read: heartbeats, calendars, explanations, versions of rules, the doctor, coming fires."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from psycopg.types.json import Jsonb

from tests.api.recorded import put_alarm, put_run, put_series
from tests.api.running_api import HttpAnswer, HttpClient, RunningApi
from tests.sql import one_row
from tocsin.core.db import Connection

RULES = """
heartbeat: {name: nightly-backup, every: 1h, grace: 10m, owners: [db-1, db-2]}
---
calendar: {name: holidays, dates: [2027-01-01, 2027-12-25]}
---
calendar: {name: open-days, none_of: [holidays]}
---
event_rule: {name: too-hot, datapoint: temperature, fire: 'value > 65.0', severity: high}
---
event_rule: {name: pump-failing, alarms: {all_of: [too-hot]}, severity: high}
"""


async def apply(api: RunningApi, text: str = RULES, name: str = "ann") -> HttpClient:
    ann = await api.client("admin:*", name=name)
    body = {"files": [{"name": "rules.yaml", "text": text}]}
    answer = await ann.post("/v1/rules:apply", body, headers={"if-match": "*"})
    assert answer.status == 200, answer
    return ann


def names(answer: HttpAnswer) -> list[str]:
    return [each["name"] for each in answer.json["items"]]


async def test_heartbeats_are_listed_with_those_that_never_checked_in(api: RunningApi) -> None:
    ann = await apply(api)
    listed = await ann.get("/v1/heartbeats")
    assert [(each["name"], each["owner"], each["status"]) for each in listed.json["items"]] == [
        ("nightly-backup", "db-1", "new"),
        ("nightly-backup", "db-2", "new"),
    ]
    assert (await ann.get("/v1/heartbeats?bad=true")).json["items"] == []
    of_one = await (await api.client("viewer:db-2")).get("/v1/heartbeats/nightly-backup")
    assert [each["owner"] for each in of_one.json["items"]] == ["db-2"]
    foreign = await (await api.client("viewer:mill-*")).get("/v1/heartbeats/nightly-backup")
    assert (foreign.status, foreign.problem["detail"]) == (404, "there is no heartbeat 'nightly-backup'")


async def test_check_ins_of_a_heartbeat_are_pages_of_its_datapoints(
    api: RunningApi, connection: Connection
) -> None:
    at = datetime(2026, 3, 7, 12, tzinfo=UTC)
    await connection.execute(
        "create table tocsin.datapoint_2026_03_07 partition of tocsin.datapoint"
        " for values from ('2026-03-07') to ('2026-03-08')"
    )
    for minute, status in enumerate(("start", "success", "fail")):
        await connection.execute(
            "insert into tocsin.datapoint (arrived_at, stream_seq, position, owner, key, ts, value, labels)"
            " values (%s, %s, 0, 'db-1', 'heartbeat.nightly-backup', %s, %s, %s)",
            (at + timedelta(minutes=minute), minute + 1, at, Jsonb(status), Jsonb({"run": "17"})),
        )
    ann = await api.client("viewer:db-1")
    path = "/v1/heartbeats/nightly-backup/check-ins?owner=db-1"
    listed = await ann.pages(path)
    assert [each["value"] for each in listed] == ["fail", "success", "start"]
    assert await ann.pages(f"{path}&limit=1") == listed
    foreign = await (await api.client("viewer:db-2")).get(path)
    assert foreign.status == 404


async def test_a_check_in_with_a_contradiction_is_refused(api: RunningApi) -> None:
    ann = await api.client("operator:db-1")
    answer = await ann.post(
        "/v1/heartbeats/nightly-backup:check-in", {"owner": "db-1", "status": "start", "exit_code": 1}
    )
    assert (answer.status, answer.problem["detail"]) == (422, "a start has no exit code")


async def test_a_calendar_has_the_days_of_a_year(api: RunningApi) -> None:
    ann = await apply(api)
    assert names(await ann.get("/v1/calendars")) == ["holidays", "open-days"]
    year = await ann.get("/v1/calendars/holidays?year=2027")
    assert year.json["days"] == ["2027-01-01", "2027-12-25"]
    rest = await ann.get("/v1/calendars/open-days?year=2027")
    assert (len(rest.json["days"]), rest.json["days_of_year"]) == (363, 365)
    unknown = await ann.get("/v1/calendars/none?year=2027")
    assert (unknown.status, unknown.problem["remedy"]) == (404, "use one of these: holidays, open-days")


async def test_the_versions_of_a_document_have_who_stored_and_who_ended_each(api: RunningApi) -> None:
    ann = await apply(api)
    bob = await apply(api, RULES.replace("value > 65.0", "value > 70.0"), name="bob")
    versions = await bob.pages("/v1/rules/event_rule/too-hot/versions")
    assert [(each["version"], each["applied_by"], each["ended_by"]) for each in versions] == [
        (2, "bob", None),
        (1, "ann", "bob"),
    ]
    assert [each["document"]["fire"] for each in versions] == ["value > 70.0", "value > 65.0"]
    assert versions[1]["until_seq"] == versions[0]["seq"]
    assert await ann.pages("/v1/rules/event_rule/too-hot/versions?limit=1") == versions
    assert (await ann.get("/v1/rules/event_rule/none/versions")).status == 404


async def test_a_schedule_is_explained_at_an_instant(api: RunningApi) -> None:
    ann = await api.client("admin:*")
    made = await ann.post("/v1/schedules", {"owner": "plant-7", "name": "digest", "cron": "0 3 * * *"})
    path = f"/v1/schedules/{made.json['schedule']['id']}/explanation"
    pending = await ann.get(path)
    assert (pending.status, pending.json["outcome"]) == (200, "pending")
    other = await ann.get(f"{path}?at=2031-03-07T03:30:00Z")
    assert other.json["outcome"] == "not-an-occurrence"
    assert other.json["schedule"] == "digest"


async def test_a_series_is_explained(api: RunningApi, connection: Connection) -> None:
    await put_series(connection, "plant-7", "dsp.temperature")
    ann = await api.client("viewer:plant-7")
    explained = await ann.get("/v1/series:explain?owner=plant-7&key=dsp.temperature")
    assert explained.json["sentence"].startswith("dsp.temperature of 'plant-7' is fresh: the last datapoint")
    assert explained.json["series"]["value"] == 21.5
    unknown = await ann.get("/v1/series:explain?owner=plant-7&key=dsp")
    assert (unknown.status, unknown.problem["detail"]) == (
        404,
        "there is no series 'dsp' of owner 'plant-7'",
    )


async def test_a_rule_over_alarms_is_explained_for_an_owner(api: RunningApi) -> None:
    ann = await apply(api)
    explained = await ann.get("/v1/rules/event_rule/pump-failing/explanation?owner=plant-7")
    assert explained.json["lines"] == ["too-hot is not open"]
    assert (await ann.get("/v1/rules/event_rule/too-hot/explanation?owner=plant-7")).status == 404


async def test_the_doctor_reports_each_problem_with_a_remedy(api: RunningApi) -> None:
    ann = await api.client("viewer:*")
    answer = await ann.get("/v1/doctor")
    findings = {each["subject"]: each for each in answer.json["findings"]}
    assert (answer.json["is_healthy"], findings["postgres"]["state"]) == (False, "ok")
    assert findings["clock"]["remedy"].startswith("start one with `tocsin run clock`")


async def test_a_changed_audit_is_found_by_its_head(api: RunningApi, connection: Connection) -> None:
    ann = await apply(api)
    await connection.execute("select tocsin.seal_audit()")
    chain = (await ann.get("/v1/audit:verify")).json
    assert (chain["problems"], chain["checked"] > 0) == ([], True)
    head = f"{chain['position']}:{chain['hash']}"
    assert (await ann.get(f"/v1/audit:verify?head={head}")).json["problems"] == []
    other = (await ann.get(f"/v1/audit:verify?head={chain['position']}:{'0' * 64}")).json
    assert len(other["problems"]) == 1


async def test_coming_fires_are_those_of_own_owners(api: RunningApi) -> None:
    admin = await api.client("admin:*")
    for owner in ("plant-7", "mill-1"):
        for name, cron in (("early", "0 3 * * *"), ("late", "0 4 * * *")):
            await admin.post("/v1/schedules", {"owner": owner, "name": name, "cron": cron})
    paused = await admin.post("/v1/schedules", {"owner": "plant-7", "name": "held", "every": "1h"})
    await admin.post(f"/v1/schedules/{paused.json['schedule']['id']}:pause")
    ann = await api.client("viewer:plant-*")
    coming = (await ann.get("/v1/upcoming?count=3")).json
    assert [fire["owner"] for fire in coming["fires"]] == ["plant-7"] * 3
    assert coming["fires"] == sorted(coming["fires"], key=lambda fire: fire["fire_at"])
    assert [each["schedule"] for each in coming["paused"]] == ["held"]
    by_fire = await ann.pages("/v1/schedules?sort=next&limit=1")
    assert by_fire == (await ann.get("/v1/schedules?sort=next")).json["items"]
    assert by_fire[-1]["name"] == "held", "what does not fire comes last"


async def test_the_most_severe_alarms_come_first_on_every_page(
    api: RunningApi, connection: Connection
) -> None:
    for severity in (2, 4, 3, 4, 2):
        await put_alarm(connection, "plant-7", severity=severity)
    ann = await api.client("viewer:plant-*")
    whole = (await ann.get("/v1/alarms?sort=severity")).json["items"]
    assert [each["level"] for each in whole] == [4, 4, 3, 2, 2]
    assert await ann.pages("/v1/alarms?sort=severity&limit=2") == whole


async def test_a_schedule_has_the_last_result_of_its_action(api: RunningApi, connection: Connection) -> None:
    ann = await apply(api, "action: {name: page, log: {message: x}}")
    made = await ann.post(
        "/v1/schedules", {"owner": "plant-7", "name": "digest", "every": "1h", "action": "page"}
    )
    id = made.json["schedule"]["id"]
    assert made.json["schedule"]["last_result"] is None
    run = await put_run(connection, "plant-7")
    await connection.execute("update tocsin.action set action_rule = 'schedule:digest' where id = %s", (run,))
    read = (await ann.get(f"/v1/schedules/{id}")).json["last_result"]
    assert (read["id"], read["state"], read["took_ms"]) == (str(run), "failed", 0)


async def test_an_administrator_lists_sessions_and_ends_one(api: RunningApi, connection: Connection) -> None:
    admin = await api.client("admin:*", name="root")
    link = await admin.post("/v1/sessions:login", {"name": "bob", "grants": ["responder:*"]})
    stranger = await api.with_token(None)
    code = link.json["path"].partition("code=")[2]
    begun = await stranger.request("POST", "/login", data={"code": code})
    cookie = {"cookie": begun.headers["set-cookie"].partition(";")[0]}
    assert (await stranger.get("/v1/me", headers=cookie)).json["name"] == "bob"
    (listed,) = (await admin.get("/v1/sessions")).json["items"]
    assert (listed["name"], listed["grants"], listed["source"]) == ("bob", ["responder:*"], "link")
    assert (await admin.delete(f"/v1/sessions/{listed['id']}")).status == 204
    assert (await stranger.get("/v1/me", headers=cookie)).status == 401
    assert (await admin.delete(f"/v1/sessions/{uuid.uuid4()}")).status == 404
    audit = await one_row(connection, "select who, verb, name from tocsin.audit order by id desc limit 1")
    assert audit == {"who": "root", "verb": "revoke", "name": "bob"}
