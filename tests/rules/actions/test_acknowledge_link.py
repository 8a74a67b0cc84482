"""Messages of channels with `acknowledge_link`: which of them have a link, and what it does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from nats.aio.client import Client

from rules.delivery.alarm_facts import AlarmFacts, MessageView
from rules.delivery.alarm_message import alarm_message
from tests.api.running_api import HttpClient, running_api
from tests.cdc.published_records import smaller
from tests.rules.delivery.receivers import Receiver, receiver, respond
from tests.rules.instance import Instance
from tests.sql import all_rows, one_row
from tocsin.core.alarm_link import AlarmLink, expiry_s, hide_links
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

URL = "https://tocsin.example.com"


@pytest.fixture
async def instance(settings: Settings, connection: Connection, bus: Client) -> Instance:
    linked = smaller(settings, egress_allow="127.0.0.1").model_copy(update={"console_url": URL})
    return await Instance.open(linked, connection, bus)


@asynccontextmanager
async def api_of(instance: Instance) -> AsyncIterator[HttpClient]:
    """A stranger to an API whose sessions are at the instant of the instance."""
    connection = instance.connection
    row = await one_row(connection, "select quote_ident(current_database()) as name")
    now = instance.clock.now().isoformat()
    await connection.execute(f"alter database {row['name']} set tocsin.now = '{now}'")
    async with running_api(instance.context.settings, must_be_ready=False) as api:
        yield await api.with_token(None)


def rules(server: Receiver, keys: str) -> str:
    target = f'webhook: {{url: "http://127.0.0.1:{server.port}/x", timeout: 5s}}'
    return (
        "event_rule: {name: hot, datapoint: t, above: 5, notify: [ops]}\n---\n"
        f"channel: {{name: ops, {target}{keys}}}\n"
    )


async def test_the_link_of_a_message_acknowledges_its_alarm(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(rules(server, ", acknowledge_link: true"))
        alarm = await instance.alarm()
        link = server.requests[0].json["acknowledge_url"].removeprefix(URL)
    async with api_of(instance) as reader:
        for method in ("GET", "HEAD"):
            assert (await reader.request(method, link)).status == 200
        row = await one_row(instance.connection, "select acknowledged_at from tocsin.alarm")
        assert row["acknowledged_at"] is None, "a program that previews links changes nothing"
        assert "<button>Acknowledge</button>" in (await reader.get(link)).text
        for _ in range(2):
            answer = await reader.post(link)
            assert (answer.status, "Acknowledged by link:ops" in answer.text) == (200, True), answer
        assert "button" not in (await reader.get(link)).text
    row = await one_row(instance.connection, "select id, acknowledged_by from tocsin.alarm")
    assert (row["id"], row["acknowledged_by"]) == (alarm, "link:ops")
    (audit,) = await all_rows(
        instance.connection, "select who, via from tocsin.audit where verb = 'acknowledge'"
    )
    assert (audit["who"], audit["via"]) == ("link:ops", "api")


async def test_a_link_that_was_changed_or_has_ended_does_nothing(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(rules(server, ", acknowledge_link: true"))
        alarm = await instance.alarm()
        text = server.requests[0].json["acknowledge_url"].rpartition("/")[2]
    link = AlarmLink.parse(text)
    assert link is not None
    other = "0" if link.signature[0] != "0" else "1"
    changed = [
        AlarmLink(UUID(int=1), link.expires_s, link.channel, link.signature).text,
        AlarmLink(alarm, link.expires_s + 1, link.channel, link.signature).text,
        AlarmLink(alarm, link.expires_s, "pager", link.signature).text,
        AlarmLink(alarm, link.expires_s, link.channel, other + link.signature[1:]).text,
        "none",
        text[:-5],
        text + "%0A",
        "%00",
    ]
    async with api_of(instance) as reader:
        for wrong in changed:
            for method in ("GET", "POST"):
                answer = await reader.request(method, f"/acknowledge/{wrong}")
                assert (answer.status, "hot" in answer.text) == (404, False), wrong
    await instance.pass_time("9d")
    async with api_of(instance) as reader:
        assert (await reader.post(f"/acknowledge/{text}")).status == 404
    row = await one_row(instance.connection, "select acknowledged_at from tocsin.alarm")
    assert row["acknowledged_at"] is None


async def test_a_channel_that_does_not_ask_for_links_has_none(instance: Instance) -> None:
    async with receiver(respond()) as server:
        await instance.rules(rules(server, ""))
        await instance.alarm()
    assert "acknowledge_url" not in json.dumps(server.requests[0].json)


async def test_a_link_that_a_target_echoes_is_not_recorded(instance: Instance) -> None:
    async with receiver(respond(404, body=b"tocsin_link_" + b"a" * 82 + b"_ops")) as server:
        await instance.rules(rules(server, ", acknowledge_link: true, give_up_after: 1s"))
        await instance.alarm()
        await instance.pass_time("1m")
    rows = await all_rows(instance.connection, "select to_jsonb(a) as text from tocsin.action a")
    recorded = json.dumps([row["text"] for row in rows])
    assert "tocsin_link_..." in recorded
    assert "a" * 82 not in recorded


def test_a_message_has_the_link_while_the_alarm_is_open() -> None:
    view = MessageView(console_url=URL, acknowledge_url=f"{URL}/acknowledge/x")
    at = datetime(2026, 3, 2, tzinfo=UTC)
    opened = alarm_message(AlarmFacts(rule="hot"), "opened", at, view)
    for form in (opened.text, opened.html, json.dumps(opened.blocks), json.dumps(opened.payload)):
        assert f"{URL}/acknowledge/x" in (form or "")
    resolved = alarm_message(AlarmFacts(rule="hot", state="resolved"), "resolved", at, view)
    assert "acknowledge/x" not in f"{resolved.text}{resolved.html}{resolved.blocks}{resolved.payload}"


def test_a_link_lasts_at_least_seven_days_and_is_hidden_in_texts() -> None:
    now = datetime(2026, 3, 2, 15, tzinfo=UTC)
    lasts = datetime.fromtimestamp(expiry_s(now), UTC) - now
    assert timedelta(days=7) <= lasts <= timedelta(days=8)
    link = AlarmLink(UUID(int=7), expiry_s(now), "ops_1", "ab" * 20)
    assert AlarmLink.parse(link.text) == link
    assert hide_links(f"POST /acknowledge/{link.text}: 404") == "POST /acknowledge/tocsin_link_..._ops_1: 404"
