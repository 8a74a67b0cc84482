"""The API of Alertmanager: repeated alerts, filters, silences, and what others may not see."""

from __future__ import annotations

from datetime import timedelta

from tests.api.protocols.alerts import AM, alert
from tests.api.protocols.stored import dead_requests, stored_events
from tests.api.running_api import RunningApi
from tests.rules.apply.apply_setup import put
from tests.sql import all_rows
from tests.wait import eventually
from timers.working_set import database_now
from tocsin.core.db import Connection
from tocsin.core.instant import instant_text

RULES = """
event_rule:
  name: from-prometheus
  event: prometheus-alert
  per: [payload.fingerprint]
  fire: 'payload.status == "firing"'
  severity: event
"""


async def alarm_states(connection: Connection, *states: str) -> None:
    async def are_so() -> bool:
        rows = await all_rows(connection, "select state from tocsin.alarm order by owner")
        return [row["state"] for row in rows] == list(states)

    await eventually(are_so, f"the alarms are {states}")


async def test_an_alert_that_is_repeated_is_one_event_and_its_end_another(
    instance: RunningApi, connection: Connection
) -> None:
    await put(connection, RULES)
    prometheus = await instance.client("operator:web-*")
    for text in ("load is 12", "load is 13"):
        posted = [await alert(connection, "web-1", timedelta(minutes=4), summary=text)]
        assert (await prometheus.post(f"{AM}/alerts", posted)).status == 200
        await stored_events(connection, "prometheus-alert", 1)
    await alarm_states(connection, "open")
    ended = [await alert(connection, "web-1", -timedelta(seconds=1))]
    assert (await prometheus.post(f"{AM}/alerts", ended)).status == 200
    firing, resolved = await stored_events(connection, "prometheus-alert", 2)
    assert (firing["payload"]["status"], resolved["payload"]["status"]) == ("firing", "resolved")
    assert firing["payload"]["annotations"] == {"summary": "load is 12"}
    await alarm_states(connection, "resolved")


async def test_alerts_are_shown_to_those_who_may_view_their_owners(
    instance: RunningApi, connection: Connection
) -> None:
    await put(connection, RULES)
    prometheus = await instance.client("operator:*")
    alerts = [await alert(connection, owner, timedelta(minutes=4)) for owner in ("db-1", "web-1")]
    await prometheus.post(f"{AM}/alerts", alerts)
    await alarm_states(connection, "open", "open")
    viewer = await instance.client("viewer:web-*")
    (shown,) = (await viewer.get(f"{AM}/alerts")).json
    assert shown["labels"]["owner"] == "web-1"
    (group,) = (await viewer.get(f"{AM}/alerts/groups")).json
    assert [one["labels"]["owner"] for one in group["alerts"]] == ["web-1"]
    everything = await prometheus.get(f"{AM}/alerts", params={"filter": 'owner=~"db-.*"'})
    assert [one["labels"]["owner"] for one in everything.json] == ["db-1"]
    assert (await prometheus.get(f"{AM}/alerts?active=false")).json == []
    assert (await prometheus.get(f"{AM}/alerts?filter=nonsense")).status == 422
    assert (await viewer.get(f"{AM}/silences")).status == 403
    assert (await viewer.post(f"{AM}/silences", {})).status == 403


async def test_an_owner_that_is_not_granted_is_rejected_and_the_others_are_used(
    instance: RunningApi, connection: Connection
) -> None:
    prometheus = await instance.client("operator:web-*")
    alerts = [await alert(connection, owner, timedelta(minutes=4)) for owner in ("db-1", "web-1")]
    answer = await prometheus.post(f"{AM}/alerts", [*alerts, {"labels": {}}])
    assert answer.status == 400
    assert "may not emit events for owner 'db-1'" in answer.text
    (event,) = await stored_events(connection, "prometheus-alert", 1)
    assert event["owner"] == "web-1"
    assert len(await dead_requests(instance.settings)) == 1


async def test_a_silence_is_replaced_shown_and_ended(api: RunningApi, connection: Connection) -> None:
    ann = await api.client("responder:*", name="ann")
    now = await database_now(connection)
    silence = {
        "matchers": [{"name": "site", "value": "ams", "isRegex": False, "isEqual": True}],
        "startsAt": instant_text(now),
        "endsAt": instant_text(now + timedelta(hours=1)),
        "createdBy": "mallory",
        "comment": "new switch",
    }
    first = (await ann.post(f"{AM}/silences", silence)).json["silenceID"]
    second = (await ann.post(f"{AM}/silences", silence | {"id": first})).json["silenceID"]
    states = {one["id"]: one["status"]["state"] for one in (await ann.get(f"{AM}/silences")).json}
    assert states == {first: "expired", second: "active"}
    shown = (await ann.get(f"{AM}/silence/{second}")).json
    assert (shown["createdBy"], shown["comment"]) == ("ann", "new switch (mallory)")
    assert (await ann.delete(f"{AM}/silence/{second}")).status == 200
    assert (await ann.delete(f"{AM}/silence/{second}")).status == 409
    assert (await ann.get(f"{AM}/silence/{second[:8]}")).status in (404, 409)
    rows = await all_rows(connection, "select who from tocsin.audit where kind = 'silence'")
    assert {row["who"] for row in rows} == {"ann"}
    assert (await ann.post(f"{AM}/silences", silence | {"endsAt": silence["startsAt"]})).status == 422


async def test_what_karma_reads_is_served(api: RunningApi) -> None:
    stranger, viewer = await api.with_token(None), await api.client("viewer:*")
    assert 'alertmanager_build_info{version="0.27.0"' in (await stranger.get("/alertmanager/metrics")).text
    assert (await stranger.get("/alertmanager/-/ready")).text == "OK"
    status = (await viewer.get(f"{AM}/status")).json
    assert status["versionInfo"]["version"] == "0.27.0"
    assert status["cluster"]["status"] == "disabled"
    assert (await viewer.get(f"{AM}/receivers")).json == [{"name": "tocsin"}]
    assert (await viewer.get(f"{AM}/alerts/groups")).json == []
    assert (await viewer.get(f"{AM}/silences")).json == []
    for path in ("alerts", "alerts/groups", "silences", "status", "receivers"):
        assert (await stranger.get(f"{AM}/{path}")).status == 401
