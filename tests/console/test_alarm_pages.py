"""Now, Alarms and Alarm: what they show, and acts on one alarm and on several."""

from __future__ import annotations

import uuid
from datetime import timedelta

from tests.api.recorded import put_alarm, put_run
from tests.api.running_api import RunningApi
from tests.clock.alarms import read_until
from tests.clock.series import WITHIN, put_series, watch_series
from tests.console.visitor import visitor
from timers.working_set import database_now
from tocsin.core.db import Connection


async def test_now_shows_open_alarms_the_most_severe_first(
    console: RunningApi, connection: Connection
) -> None:
    await put_alarm(connection, "plant-7", severity=2)
    await put_alarm(connection, "mill-1", severity=5)
    await put_alarm(connection, "quiet-1", state="resolved")
    now = await (await visitor(console, "viewer:*")).open("/")
    assert now.status == 200
    assert now.page.one("h1").text == "2 open alarms"
    first, second = [row for row in now.rows if "hot of" in row]
    assert ("mill-1" in first, "plant-7" in second, "quiet-1" in now.text) == (True, True, False)


async def test_now_without_anything_teaches_the_first_commands(console: RunningApi) -> None:
    now = await (await visitor(console, "admin:*")).open("/")
    assert now.page.one("h1").text == "All quiet"
    assert "tocsin send greenhouse room.temperature 31.5" in now.text
    assert "tocsin schedule add digest" in now.text


async def test_now_reports_checks_that_are_held(console: RunningApi, connection: Connection) -> None:
    watcher = await visitor(console, "viewer:plant-*")
    assert "Checks are held" not in (await watcher.open("/")).text
    arrived = await database_now(connection) - WITHIN - timedelta(minutes=3, seconds=20)
    await read_until(connection, arrived)
    await put_series(connection, arrived)
    await watch_series(connection, arrived + WITHIN)
    await connection.execute("update tocsin.timer set nominal_at = %s", (arrived + WITHIN,))
    held = (await watcher.open("/")).page.one("p", class_="warn").text
    assert "Checks are held for 3m" in held
    assert "1 deadline waits" in held


async def test_alarms_are_filtered_by_state_owner_severity_and_matcher(
    console: RunningApi, connection: Connection
) -> None:
    await put_alarm(connection, "plant-7", severity=2)
    await put_alarm(connection, "mill-1", severity=5)
    await put_alarm(connection, "shop-1", state="pending")
    await put_alarm(connection, "old-1", state="resolved")
    ann = await visitor(console, "viewer:*")

    async def owners(query: str) -> list[str]:
        rows = (await ann.open(f"/alarms{query}")).rows
        return [
            name for row in rows for name in ("plant-7", "mill-1", "shop-1", "old-1") if f"of {name}" in row
        ]

    assert await owners("") == ["mill-1", "shop-1", "plant-7"]
    assert await owners("?state=resolved") == ["old-1"]
    assert await owners("?owner=plant-7") == ["plant-7"]
    assert await owners("?severity=high") == ["mill-1"]
    assert await owners("?where=owner.startsWith(%22mill%22)") == ["mill-1"]
    wrong = await ann.open("/alarms?where=nothing")
    assert (wrong.status, "where" in wrong.text) == (422, True)


async def test_alarms_are_grouped_by_owner(console: RunningApi, connection: Connection) -> None:
    for owner, severity in (("plant-7", 2), ("mill-1", 5), ("plant-7", 3)):
        await put_alarm(connection, owner, severity=severity)
    page = (await (await visitor(console, "viewer:*")).open("/alarms?group=owner")).page
    assert [heading.text for heading in page.all("h2", class_="group")] == ["mill-1 1", "plant-7 2"]


async def test_an_alarm_shows_its_history_its_runs_and_its_commands(
    console: RunningApi, connection: Connection
) -> None:
    alarm = await put_alarm(connection, "plant-7")
    shown = await (await visitor(console, "operator:*")).open(f"/alarms/{alarm}")
    assert "secret-of-plant-7" in shown.page.one("h1").text
    assert f"tocsin explain {str(alarm)[:8]}" in shown.text
    assert f"tocsin ack {str(alarm)[:8]}" in shown.text


async def test_acknowledging_says_the_same_as_the_command_and_names_the_console_in_the_audit(
    console: RunningApi, connection: Connection
) -> None:
    alarm = await put_alarm(connection, "plant-7")
    ann = await visitor(console, "responder:*", name="ann")
    shown = await ann.act(f"/alarms/{alarm}/ack", {"note": "fan is being replaced"})
    done = shown.page.one("div", role="status").text
    assert f"acknowledged alarm {str(alarm)[:8]} (hot of 'plant-7'), seq" in done
    assert f"tocsin ack {str(alarm)[:8]} --note 'fan is being replaced'" in done
    assert "acknowledged by ann" in shown.text
    row = await (
        await connection.execute("select who, via, verb from tocsin.audit where kind = 'alarm'")
    ).fetchone()
    assert row == ("ann", "console", "acknowledge")
    again = await ann.act(f"/alarms/{alarm}/ack", {})
    assert "was already acknowledged by ann" in again.page.one("div", role="status").text


async def test_what_was_done_is_shown_once(console: RunningApi, connection: Connection) -> None:
    alarm = await put_alarm(connection, "plant-7")
    ann = await visitor(console, "responder:*")
    shown = await ann.act(f"/alarms/{alarm}/ack", {"note": "seen"})
    assert "acknowledged alarm" in shown.page.one("div", role="status").text
    assert (await ann.open(f"/alarms/{alarm}")).page.all("div", role="status") == []


async def test_a_snooze_begins_and_ends(console: RunningApi, connection: Connection) -> None:
    alarm = await put_alarm(connection, "plant-7")
    ann = await visitor(console, "responder:*")
    snoozed = await ann.act(f"/alarms/{alarm}/snooze", {"for": "2h"})
    assert "is snoozed until" in snoozed.page.one("div", role="status").text
    ended = await ann.act(f"/alarms/{alarm}/snooze", {})
    assert "is no longer snoozed" in ended.page.one("div", role="status").text
    refused = await ann.send(f"/alarms/{alarm}/snooze", {"for": "2 bananas"})
    assert (refused.status, "2 bananas" in refused.text) == (422, True)


async def test_several_alarms_are_previewed_and_then_changed(
    console: RunningApi, connection: Connection
) -> None:
    alarms = [await put_alarm(connection, owner) for owner in ("plant-7", "plant-8", "mill-1")]
    ann = await visitor(console, "responder:plant-*", "viewer:*")
    preview = await ann.open("/alarms/ack?where=true")
    assert preview.page.one("h1").text == "Acknowledge 2 alarms?"
    assert "tocsin ack --where true" in preview.text
    done = await ann.act("/alarms/ack", {"where": "true", "expected": 2, "note": "drill"})
    assert "acknowledged 2 alarms" in done.page.one("div", role="status").text
    refused = await ann.send("/alarms/ack", {"where": "true", "expected": 7})
    assert (refused.status, "2 alarms match now, not 7" in refused.text) == (409, True)
    foreign = await ann.send("/alarms/resolve", {"id": [str(alarms[2])]})
    assert foreign.status == 403


async def test_a_selection_of_ids_is_changed_together(console: RunningApi, connection: Connection) -> None:
    alarms = [str(await put_alarm(connection, owner)) for owner in ("plant-7", "plant-8")]
    ann = await visitor(console, "responder:*")
    preview = await ann.open("/alarms/snooze?" + "&".join(f"id={alarm}" for alarm in alarms))
    hidden = [field.attributes["value"] for field in preview.page.all("input", name="id")]
    assert hidden == alarms
    done = await ann.act("/alarms/snooze", {"id": alarms, "for": "1h", "expected": 2})
    assert "snoozed 2 alarms" in done.page.one("div", role="status").text
    wrong = await ann.send("/alarms/ack", {"id": "1 or 1"})
    assert wrong.status == 422


async def test_an_alarm_that_is_none_or_foreign_is_not_found(
    console: RunningApi, connection: Connection
) -> None:
    foreign = await put_alarm(connection, "mill-1")
    ann = await visitor(console, "responder:plant-*")
    texts = set()
    for id in (str(uuid.uuid4()), str(foreign), "nonsense"):
        shown = await ann.open(f"/alarms/{id}")
        assert shown.status == 404
        texts.add(shown.text.replace(id, "ID"))
    assert len(texts) == 1, "no answer shows whether a foreign alarm exists"


async def test_now_counts_runs_that_died(console: RunningApi, connection: Connection) -> None:
    run = await put_run(connection, "plant-7")
    await connection.execute("update tocsin.action set ended_at = tocsin.instant() where id = %s", (run,))
    assert "1 run died within the last day" in (await (await visitor(console, "viewer:*")).open("/")).text
    assert "died" not in (await (await visitor(console, "viewer:mill-*")).open("/")).text


async def test_find_leads_to_screens_and_alarms_of_own_owners(
    console: RunningApi, connection: Connection
) -> None:
    await put_alarm(connection, "plant-7")
    await put_alarm(connection, "mill-1")
    ann = (await visitor(console, "viewer:plant-*")).client
    found = (await ann.get("/find?q=hot", headers={"accept": "application/json"})).json
    assert [(each["kind"], each["name"]) for each in found] == [("alarm", "plant-7/hot")]
    screens = (await ann.get("/find?q=ALAR", headers={"accept": "application/json"})).json
    assert [each["path"] for each in screens] == ["/alarms"]
