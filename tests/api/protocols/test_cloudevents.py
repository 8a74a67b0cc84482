"""CloudEvents with the SDK of the CloudEvents project, in both directions."""

from __future__ import annotations

import json
from typing import Any

from cloudevents.core.bindings.http import HTTPMessage, from_http_event, to_binary_event, to_structured_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from tests.api.protocols.stored import dead_requests, stored_events
from tests.api.running_api import RunningApi
from tocsin.core.db import Connection

BATCH = {"content-type": "application/cloudevents-batch+json"}


def shipped(id: str, **attributes: Any) -> CloudEvent:
    given = {"id": id, "source": "/orders", "type": "order.shipped", "subject": "plant-7", **attributes}
    given.setdefault("datacontenttype", "application/json")
    return CloudEvent(attributes={"specversion": "1.0", **given}, data={"order": 17})


async def test_events_of_the_sdk_are_appended_once_and_read_back(
    instance: RunningApi, connection: Connection
) -> None:
    orders = await instance.client("operator:plant-*")
    for message in (
        to_binary_event(shipped("1")),
        to_structured_event(shipped("2")),
        to_binary_event(shipped("1")),
    ):
        answer = await orders.request(
            "POST", "/cloudevents", data=message.body, headers=dict(message.headers)
        )
        assert answer.status == 202, answer
    events = await stored_events(connection, "order-shipped", 2)
    assert [(event["owner"], event["payload"]) for event in events] == [("plant-7", {"order": 17})] * 2

    batch = await orders.get("/cloudevents?after=0&limit=500")
    assert batch.headers["content-type"] == "application/cloudevents-batch+json"
    entries = [entry for entry in batch.json if entry["type"] == "order-shipped"]
    headers = {"content-type": "application/cloudevents+json"}
    read = from_http_event(HTTPMessage(headers, json.dumps(entries[0]).encode()), JSONFormat())
    assert (read.get_type(), read.get_data()) == ("order-shipped", {"order": 17})
    after = int(batch.headers["tocsin-next-after"])
    assert after >= events[-1]["seq"]
    assert (await orders.get(f"/cloudevents?after={after}")).json == []


async def test_another_owner_sees_and_sends_nothing(instance: RunningApi, connection: Connection) -> None:
    orders, other = (
        await instance.client("operator:plant-*"),
        await instance.client("operator:web-*", name="o"),
    )
    message = to_binary_event(shipped("1"))
    await orders.request("POST", "/cloudevents", data=message.body, headers=dict(message.headers))
    await stored_events(connection, "order-shipped", 1)
    assert (await other.get("/cloudevents?after=0")).json == []
    entry = {"specversion": "1.0", "id": "9", "source": "s", "type": "t"}
    entries = [entry | {"subject": "plant-7"}, entry | {"subject": "web-1"}]
    refused = await other.request("POST", "/cloudevents", data=json.dumps(entries), headers=BATCH)
    assert refused.status == 400
    assert "'o' may not emit events for owner 'plant-7'" in refused.problem["detail"]
    (event,) = await stored_events(connection, "t", 1)
    assert event["owner"] == "web-1"
    assert len(await dead_requests(instance.settings)) == 1


async def test_what_is_no_event_is_refused(api: RunningApi) -> None:
    client = await api.client("operator:*")
    assert (await client.post("/cloudevents", {"a": 1})).status == 422
    assert (await client.get("/cloudevents?after=-1")).status == 422
    assert (await client.get("/cloudevents?limit=501")).status == 422
    reserved = to_binary_event(shipped("1", type="alarm-opened"))
    answer = await client.request("POST", "/cloudevents", data=reserved.body, headers=dict(reserved.headers))
    assert answer.status == 400
    assert "reserved" in answer.problem["detail"]
    assert (await (await api.client("viewer:*")).post("/cloudevents", {})).status == 403
