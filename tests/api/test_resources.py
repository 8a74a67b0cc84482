"""The resources: what the command line can do, with the same words."""

from __future__ import annotations

import uuid

import pytest

from tests.api.recorded import put_alarm, put_run, put_series
from tests.api.running_api import RunningApi
from tests.sql import one_row
from tocsin.core.db import Connection


async def test_a_schedule_is_created_once_with_the_same_content(api: RunningApi) -> None:
    ann = await api.client("author:billing", name="ann")
    body = {
        "owner": "billing",
        "name": "invoice-42",
        "at": "2027-03-07T12:00Z",
        "payload": {"n": 1.5, "ä": None},
    }
    first = await ann.post("/v1/schedules", body)
    assert first.status == 201
    schedule = first.json["schedule"]
    assert (schedule["payload"], schedule["created_by"], schedule["created_via"]) == (
        body["payload"],
        "ann",
        "api",
    )
    assert schedule["next_fire_at"] == "2027-03-07T12:00:00Z"
    assert first.headers["location"] == f"/v1/schedules/{schedule['id']}"
    again = await ann.post("/v1/schedules", body)
    assert (again.status, again.json["deduped"], again.json["schedule"]["id"]) == (200, True, schedule["id"])
    other = await ann.post("/v1/schedules", {**body, "at": "2027-03-08T12:00Z"})
    assert (other.status, other.problem["type"]) == (409, "/docs/problems#refused")
    assert "exists with other content (at is 2027-03-07T12:00" in other.problem["detail"]
    assert 'If-Match: "1"' in other.problem["remedy"]


async def test_an_edit_needs_the_version_it_is_based_on(api: RunningApi) -> None:
    ann, bob = await api.client("author:*", name="ann"), await api.client("author:*", name="bob")
    made = (await ann.post("/v1/schedules", {"name": "digest", "every": "1h"})).json["schedule"]
    path = f"/v1/schedules/{made['id']}"
    missing = await ann.put(path, {"every": "2h"})
    assert (missing.status, missing.problem["type"]) == (428, "/docs/problems#no-precondition")
    read = await ann.get(path)
    edited = await bob.put(path, {"every": "2h"}, headers={"if-match": read.headers["etag"]})
    assert (edited.status, edited.headers["etag"]) == (200, '"2"')
    late = await ann.put(path, {"every": "3h"}, headers={"if-match": read.headers["etag"]})
    assert late.status == 412
    assert "bob changed it via api at " in late.problem["detail"]
    assert (await ann.get(path)).json["recurrence"]["every"] == "2h"


async def test_a_paused_schedule_has_no_next_fire_until_it_is_resumed(
    api: RunningApi, connection: Connection
) -> None:
    operator = await api.client("operator:*", name="op")
    made = (await operator.post("/v1/schedules", {"name": "digest", "every": "1h"})).json["schedule"]
    path = f"/v1/schedules/{made['id']}"
    paused = await operator.post(f"{path}:pause")
    assert (paused.json["changed"], paused.json["schedule"]["status"]) == (True, "paused")
    assert paused.json["schedule"]["next_fire_at"] is None
    assert (await operator.post(f"{path}:pause")).json["changed"] is False
    assert (await operator.post(f"{path}:resume")).json["schedule"]["next_fire_at"] is not None
    ran = await operator.post(f"{path}:run")
    assert ran.status == 200
    event = await one_row(connection, "select type, payload from tocsin.event order by seq desc limit 1")
    assert event["type"] == "schedule-fired"
    cancelled = await operator.post(f"{path}:cancel")
    assert cancelled.json["schedule"]["status"] == "cancelled"
    refused = await operator.post(f"{path}:resume")
    assert (refused.status, refused.problem["detail"]) == (
        409,
        "schedule 'digest' is cancelled and cannot be resumed",
    )
    audit = await connection.execute(
        "select who, via, verb from tocsin.audit where kind = 'schedule' order by id"
    )
    rows = await audit.fetchall()
    assert [(who, via) for who, via, _ in rows] == [("op", "api")] * 5


async def test_a_single_fire_is_moved(api: RunningApi) -> None:
    ann = await api.client("author:*")
    made = (await ann.post("/v1/schedules", {"name": "once", "at": "2027-03-07T12:00Z"})).json["schedule"]
    moved = await ann.post(f"/v1/schedules/{made['id']}:move", {"at": "2027-04-01T08:00Z"})
    assert moved.json["schedule"]["next_fire_at"] == "2027-04-01T08:00:00Z"
    recurring = (await ann.post("/v1/schedules", {"name": "often", "every": "1h"})).json["schedule"]
    refused = await ann.post(f"/v1/schedules/{recurring['id']}:move", {"at": "in 10m"})
    assert refused.status == 409


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"name": "x"}, "needs one of"),
        ({"name": "x", "cron": "61 * * * *"}, "61"),
        ({"name": "x", "every": "1h", "tz": "Mars/Olympus"}, "Mars/Olympus"),
        ({"name": "x", "every": "1h", "action": "none"}, "no action 'none' is applied"),
        ({"name": "x", "every": "1h", "owner": "tocsin:x"}, "tocsin:"),
    ],
)
async def test_a_wrong_schedule_is_refused_with_the_words_of_the_command_line(
    api: RunningApi, body: dict[str, str], detail: str
) -> None:
    ann = await api.client("author:*")
    answer = await ann.post("/v1/schedules", body)
    assert answer.status in (409, 422)
    assert detail in answer.problem["detail"]
    assert "--" not in answer.problem["detail"], "an option of the command line"


async def test_pages_are_disjoint_and_complete(api: RunningApi, connection: Connection) -> None:
    ann = await api.client("viewer:plant-*", "author:plant-*")
    for number in range(7):
        body = {"owner": "plant-7", "name": f"s{number}", "every": "1h"}
        assert (await ann.post("/v1/schedules", body)).status == 201
        await put_alarm(connection, "plant-7")
        await put_run(connection, "plant-7")
        await put_series(connection, "plant-7", f"k{number}")
    for path in ("schedules", "alarms", "actions", "series", "events"):
        whole = (await ann.get(f"/v1/{path}")).json["items"]
        paged = await ann.pages(f"/v1/{path}?limit=3")
        assert paged == whole, path
        if path != "events":
            assert len(whole) == 7
            first = await ann.get(f"/v1/{path}?limit=3")
            assert (
                first.headers["link"]
                == f'</v1/{path}?limit=3&cursor={first.json["next_cursor"]}>; rel="next"'
            )


async def test_a_page_has_at_most_500_entries_and_a_wrong_cursor_is_named(api: RunningApi) -> None:
    ann = await api.client("viewer:*")
    assert (await ann.get("/v1/alarms?limit=501")).status == 422
    for cursor in ("x", "W10", "WyJhIiwiYiJd", "bnVsbA", "WzEsMl0"):
        answer = await ann.get(f"/v1/alarms?cursor={cursor}")
        assert (answer.status, "is not of this list" in answer.problem["detail"]) == (422, True)


async def test_an_alarm_is_acknowledged_once(api: RunningApi, connection: Connection) -> None:
    id = await put_alarm(connection, "plant-7")
    ann = await api.client("responder:plant-*", name="ann")
    first = await ann.post(f"/v1/alarms/{id}:ack", {"note": "fan"})
    assert (first.status, first.json["changed"], first.json["alarm"]["acknowledged_by"]) == (200, True, "ann")
    again = await ann.post(f"/v1/alarms/{id}:ack", {})
    assert (again.json["changed"], again.json["seq"]) == (False, None)
    snoozed = await ann.post(f"/v1/alarms/{id}:snooze", {"for": "2h"})
    assert snoozed.json["alarm"]["snoozed_by"] == "ann"
    assert (await ann.post(f"/v1/alarms/{id}:snooze", {})).json["alarm"]["snoozed_until"] is None
    both = await ann.post(f"/v1/alarms/{id}:snooze", {"for": "2h", "until": "2027-01-01T00:00Z"})
    assert (both.status, both.problem["detail"]) == (422, "for and until exclude each other")


async def test_a_changed_number_of_matches_refuses_the_change(
    api: RunningApi, connection: Connection
) -> None:
    await put_alarm(connection, "plant-7")
    ann = await api.client("responder:plant-*")
    refused = await ann.post("/v1/alarms:snooze", {"where": "true", "for": "1h", "expected": 2})
    assert (refused.status, refused.problem["detail"]) == (409, "1 alarms match now, not 2")
    wrong = await ann.post("/v1/alarms:ack", {"where": "ownr == 1"})
    assert (wrong.status, wrong.problem["detail"].startswith("where: ")) == (422, True)


async def test_a_silence_is_previewed_added_and_expired(api: RunningApi, connection: Connection) -> None:
    await put_alarm(connection, "plant-7")
    ann = await api.client("responder:*", name="ann")
    body = {"matcher": 'owner == "plant-7"', "for": "2h", "reason": "new switch"}
    preview = await ann.post("/v1/silences", {**body, "preview": True})
    assert (preview.json["matches"], preview.json["seq"]) == (1, None)
    assert (await ann.get("/v1/silences")).json["items"] == []
    added = await ann.post("/v1/silences", body)
    assert (added.status, added.json["silence"]["created_by"]) == (201, "ann")
    alarm = (await ann.get("/v1/alarms")).json["items"][0]
    assert alarm["suppressed_by"] == f"silence:{added.json['silence']['id']}"
    assert (await ann.post(f"/v1/silences/{added.json['silence']['id']}:expire")).status == 200
    again = await ann.post(f"/v1/silences/{added.json['silence']['id']}:expire")
    assert (again.status, " ended at " in again.problem["detail"]) == (409, True)


async def test_runs_are_read_and_counted_by_owner(api: RunningApi, connection: Connection) -> None:
    id = await put_run(connection, "plant-7")
    await put_run(connection, "mill-1")
    ann = await api.client("operator:plant-*")
    assert [row["id"] for row in (await ann.get("/v1/actions?state=dead")).json["items"]] == [str(id)]
    stats = (await ann.get("/v1/stats")).json
    assert (stats["total"], stats["states"]) == (1, {"failed": 1})
    assert (await ann.get(f"/v1/actions/{id}")).json["state"] == "failed"
    cancelled = await ann.post(f"/v1/actions/{id}:cancel")
    assert cancelled.status == 409


async def test_what_does_not_exist_is_404(api: RunningApi) -> None:
    admin = await api.client("admin:*")
    for path in ("alarms", "actions", "schedules", "silences"):
        answer = await admin.get(f"/v1/{path}/{uuid.uuid4()}")
        assert (answer.status, answer.problem["type"]) == (404, "/docs/problems#not-found"), path
    assert (await admin.get("/v1/rules/event_rule/none")).status == 404
    wrong = await admin.get("/v1/rules/event_rul/none")
    assert (wrong.status, wrong.problem["remedy"]) == (422, "did you mean 'event_rule'?")


async def test_events_after_a_seq_come_in_the_order_of_the_log(api: RunningApi) -> None:
    ann = await api.client("operator:*")
    made = (await ann.post("/v1/schedules", {"name": "digest", "every": "1h"})).json["schedule"]
    for _ in range(3):
        await ann.post(f"/v1/schedules/{made['id']}:run")
    seqs = [event["seq"] for event in (await ann.get("/v1/events?after=0")).json["items"]]
    assert seqs == sorted(seqs)
    assert len(seqs) == 6
    assert [event["seq"] for event in (await ann.get("/v1/events")).json["items"]] == seqs[::-1]
    assert [e["seq"] for e in (await ann.get(f"/v1/events?after={seqs[3]}")).json["items"]] == seqs[4:]
