"""Delivery steps: the message at a real server, and the outcome in the history."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from nats.aio.client import Client

from rules.lanes.data_lane import DataLane
from tests.cdc.published_records import smaller
from tests.rules.apply.apply_setup import rule
from tests.rules.delivery.mail_servers import mail_server
from tests.rules.delivery.receivers import in_turn, receiver, respond, stall
from tests.rules.instance import Instance
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


@pytest.fixture
async def instance(settings: Settings, connection: Connection, bus: Client) -> Instance:
    return await Instance.open(smaller(settings, egress_allow="127.0.0.1"), connection, bus)


STEADY = "retry: {attempts: 3, initial_interval: 10s, jitter: 0}"


async def test_a_webhook_is_tried_until_it_is_taken_with_one_idempotency_key(instance: Instance) -> None:
    async with receiver(in_turn(respond(503), respond(500), respond(200))) as server:
        await instance.runbook(
            f"""
- {STEADY}
  name: tell
  webhook: {{url: "http://127.0.0.1:{server.port}/x", payload: {{owner: "{{{{ owner }}}}", n: "{{{{ payload.n }}}}"}}}}
"""
        )
        await instance.event(owner="shop", payload={"n": 7})
        await instance.pass_time("1h")
    assert [one.json for one in server.requests] == [{"owner": "shop", "n": 7}] * 3
    row = await instance.action()
    assert {one.headers["webhook-id"] for one in server.requests} == {f"{row['id']}/0"}
    assert await instance.history() == ["0s 0 waiting", "10s 0 waiting (2)", "30s 0 completed (3)"]
    assert (row["state"], row["answers"]["tell"]["status"]) == ("completed", 200)


async def test_a_webhook_that_never_succeeds_is_on_the_dead_letter_list(instance: Instance) -> None:
    async with receiver(respond(503, b"busy")) as server:
        await instance.runbook(f'- {STEADY}\n  webhook: {{url: "http://127.0.0.1:{server.port}/x"}}')
        await instance.event()
        await instance.pass_time("1h")
    row = await instance.action()
    assert row["state"] == "failed"
    assert row["error"] == f"127.0.0.1:{server.port} answered 503: busy"
    assert len(server.requests) == 3
    assert row["active"] == {"0": {"attempt": 3, "state": "failed", "error": row["error"]}}


async def test_a_permanent_answer_is_not_retried(instance: Instance) -> None:
    async with receiver(respond(404)) as server:
        await instance.runbook(f'- {STEADY}\n  webhook: {{url: "http://127.0.0.1:{server.port}/x"}}')
        await instance.event()
    assert len(server.requests) == 1
    assert (await instance.action())["state"] == "failed"


async def test_a_retry_waits_for_the_time_that_the_server_asks_for(instance: Instance) -> None:
    async with receiver(in_turn(respond(429, Retry_After="600"), respond())) as server:
        await instance.runbook(f'- {STEADY}\n  webhook: {{url: "http://127.0.0.1:{server.port}/x"}}')
        await instance.event()
        await instance.pass_time("9m59s")
        assert len(server.requests) == 1
        await instance.pass_time("1s")
    assert await instance.history() == ["0s 0 waiting", "10m 0 completed (2)"]


async def test_a_step_that_takes_longer_than_its_timeout_is_timed_out(instance: Instance) -> None:
    async with receiver(stall) as server:
        await instance.runbook(
            f'- timeout: 100ms\n  retry: {{attempts: 1}}\n  webhook: {{url: "http://127.0.0.1:{server.port}/x"}}'
        )
        await instance.event()
    row = await instance.action()
    assert (row["state"], row["error"]) == ("timed_out", "it did not end within 100ms")


async def test_an_address_that_is_not_allowed_is_not_reached(
    settings: Settings, connection: Connection, bus: Client
) -> None:
    instance = await Instance.open(settings, connection, bus)
    async with receiver() as server:
        await instance.runbook(f'- webhook: {{url: "http://127.0.0.1:{server.port}/x"}}')
        await instance.event()
    assert server.connections == 0
    assert "TOCSIN_EGRESS_ALLOW" in (await instance.action())["error"]


async def test_a_channel_gets_the_message_of_the_alarm_and_is_read_when_it_is_used(
    instance: Instance,
) -> None:
    async with receiver() as old, receiver() as new:

        def channel(port: int, keys: str = "") -> str:
            return f'channel:\n  name: ops\n  webhook: {{url: "http://127.0.0.1:{port}/x"}}\n{keys}---\n'

        steps = "action:\n  name: book\n  steps:\n    - wait: {for: 5m}\n    - channel: {name: ops}\n"
        await instance.rules(channel(old.port) + steps + rule("each", "book", 'type == "alarm-opened"'))
        await instance.alarm()
        await instance.rules(channel(new.port))
        await instance.pass_time("5m")
    assert old.connections == 0
    said = new.only.json
    assert (said["type"], said["rule"], said["severity"], said["owner"]) == (
        "alarm-opened",
        "hot",
        "high",
        "plant-7",
    )
    assert (said["value"], said["message"]) == (71.5, "too hot")
    assert (await instance.action())["result"]["channel"] == "ops"


async def test_a_disabled_channel_sends_nothing_and_the_answer_has_the_reason(instance: Instance) -> None:
    text = 'channel: {name: ops, enabled: false, webhook: {url: "http://127.0.0.1:1/x"}}\n---\n'
    await instance.rules(text + "action: {name: book, channel: {name: ops}}\n" + rule("each", "book"))
    await instance.event()
    row = await instance.action()
    assert (row["state"], row["result"]["reason"]) == ("completed", "the channel is disabled")


async def test_a_channel_that_was_removed_fails_the_step_with_a_remedy(instance: Instance) -> None:
    text = 'channel: {name: ops, webhook: {url: "http://127.0.0.1:1/x"}}\n---\n'
    await instance.rules(text + "action: {name: book, channel: {name: ops}}\n" + rule("each", "book"))
    await instance.connection.execute(
        "update tocsin.rule_version set until_seq = from_seq where kind = 'channel'"
    )
    await instance.event()
    assert (await instance.action())[
        "error"
    ] == "there is no channel 'ops': `tocsin channels` lists those that are applied"


async def test_a_text_of_the_document_replaces_every_form_of_the_default(
    instance: Instance,
) -> None:
    async with receiver() as server:
        secrets = instance.context.settings._secret_variables
        secrets["TOCSIN_SECRET_SLACK_URL"] = f"http://127.0.0.1:{server.port}/slack"
        await instance.runbook(
            """
- slack: {url: {secret: slack-url}, text: "{{ alarm.message }}!"}
- slack: {url: {secret: slack-url}, blocks: [{type: section, text: {type: mrkdwn, text: "{{ owner }}"}}]}
""",
            'type == "alarm-opened"',
        )
        await instance.alarm()
    own, blocks = [one.json for one in server.requests]
    assert own["blocks"][1]["text"]["text"] == "too hot!"
    assert blocks["blocks"] == [{"type": "section", "text": {"type": "mrkdwn", "text": "plant-7"}}]
    assert blocks["text"] == "[HIGH] hot (plant-7)"
    assert "SLACK_URL" not in json.dumps((await instance.action())["answers"])


async def test_mail_arrives_as_text_and_html(instance: Instance) -> None:
    async with mail_server() as mailbox:
        await instance.runbook(
            f"""
- email:
    smtp: {{host: 127.0.0.1, port: {mailbox.port}, security: none}}
    from: tocsin@example.com
    to: [ops@example.com]
    subject: "{{{{ type }}}} of {{{{ owner }}}}"
    text: "plain {{{{ payload.n }}}}"
    html: "<b>{{{{ payload.n }}}}</b>"
"""
        )
        await instance.event(owner="shop", payload={"n": "<7>"})
        mail = mailbox.mail()
    assert (await instance.action())["state"] == "completed"
    assert mail["subject"] == "noted of shop"
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    assert (text.get_content().strip(), html.get_content().strip()) == ("plain <7>", "<b>&lt;7&gt;</b>")


async def test_a_digest_lists_open_alarms_new_events_and_stale_series_as_an_answer(
    instance: Instance,
) -> None:
    await instance.runbook(
        "- {name: summary, digest: {queries: [summary, open_alarms, events, stale_series]}}\n"
        '- log: {message: "{{ answers.summary.subject }}"}',
        'type == "morning"',
    )
    await instance.event("morning")
    await instance.alarm()
    await instance.connection.execute(
        "insert into tocsin.current_value (owner, key, partition, value, ts, arrived_at, stream_seq, first_arrived_at,"
        " freshness, stale_since) values ('plant-7', 'dsp.t', 0, '3', %(at)s, %(at)s, 1, %(at)s, 'stale', %(at)s)",
        {"at": instance.clock.now()},
    )
    await instance.pass_time("1d")
    await instance.event("morning")
    first, second = await all_rows(instance.connection, "select * from tocsin.action order by event_seq")
    assert first["result"] == {"message": "Digest: 0 alarms, 0 open, 1 event, 0 stale series"}
    assert second["result"] == {"message": "Digest: 0 alarms, 1 open, 2 events, 1 stale series"}
    assert second["answers"]["summary"]["text"] == (
        "Digest: 0 alarms, 1 open, 2 events, 1 stale series\n\n"
        "2026-03-02 08:00:00 UTC to 2026-03-03 08:00:00 UTC\n\n"
        "Alarms: 0\n\n"
        "Open alarms: 1\n  [HIGH] hot (plant-7)  too hot  open  2026-03-02 08:00:00 UTC\n\n"
        "Events: 2\n  2026-03-03 08:00:00 UTC  morning\n"
        "  2026-03-02 08:00:00 UTC  alarm-opened hot (plant-7)\n\n"
        "Stale series: 1\n  dsp.t (plant-7)  2026-03-02 08:00:00 UTC  last 3\n"
    )


async def test_a_digest_is_rendered_by_its_own_templates_and_sent_through_a_channel(
    instance: Instance,
) -> None:
    async with receiver() as server:
        await instance.rules(
            f"""
channel: {{name: ops, webhook: {{url: "http://127.0.0.1:{server.port}/x"}}}}
---
action:
  name: book
  digest:
    queries: [open_alarms]
    limit: 1
    channel: ops
    subject: "{{{{ counts.open_alarms }}}} open"
    text: "{{% for one in open_alarms %}}{{{{ one.rule }}}} {{{{ one.severity }}}} {{% endfor %}}{{{{ type }}}}"
"""
            + rule("each", "book", 'type == "morning"')
        )
        await instance.alarm("hot")
        await instance.alarm("cold")
        await instance.event("morning")
    sent = server.only.json
    assert (sent["type"], sent["subject"], sent["counts"]) == ("digest", "2 open", {"open_alarms": 2})
    assert sent["text"] in ("cold high morning", "hot high morning")
    assert (await instance.action())["result"]["counts"] == {"open_alarms": 2}


@pytest.fixture
async def data_stream(instance: Instance, connection: Connection, bus: Client) -> str:
    lane = DataLane(instance.context.settings)
    await lane.open(connection, bus.jetstream())
    return instance.context.settings.data_stream


async def datapoints(bus: Client, stream: str) -> list[dict[str, Any]]:
    js = bus.jetstream()
    last = (await js.stream_info(stream)).state.last_seq
    return [json.loads((await js.get_msg(stream, seq)).data or b"") for seq in range(1, last + 1)]


async def test_a_recorded_value_and_a_probe_are_datapoints(
    instance: Instance, bus: Client, data_stream: str
) -> None:
    async with receiver(respond(500)) as server:
        await instance.runbook(
            f"""
- record: {{key: sla.breaches, value: 0}}
- record: {{key: sla.last, value: "{{{{ payload.n }}}}", owner: fixed}}
- probe: {{key: shop.up, tcp: {{host: 127.0.0.1, port: {server.port}}}}}
- name: look
  probe: {{key: shop.web, http: {{url: "http://127.0.0.1:{server.port}/health"}}}}
"""
        )
        await instance.event(owner="shop", payload={"n": 7.5})
    row = await instance.action()
    assert row["state"] == "completed", row["error"]
    assert (row["answers"]["look"]["well"], row["answers"]["look"]["status"]) == (False, 500)
    breaches, last, tcp, web = [one["batch"] for one in await datapoints(bus, data_stream)]
    assert breaches == [{"key": "sla.breaches", "value": 0, "ts": "2026-03-02T08:00:00Z"}]
    assert last[0]["value"] == 7.5
    assert (tcp[0]["key"], tcp[0]["value"]) == ("shop.up", True)
    assert [one["key"] for one in web] == ["shop.web", "shop.web.latency_ms"]
    assert web[0]["value"] is False


async def test_a_datapoint_without_a_stream_is_tried_again(instance: Instance) -> None:
    await instance.runbook(f"- {STEADY}\n  record: {{key: k, value: 1}}")
    await instance.event(owner="shop")
    await instance.pass_time("1h")
    row = await instance.action()
    assert row["error"] == "the data stream does not exist: `tocsin run worker` creates it"
    assert timedelta(0) < row["ended_at"] - row["started_at"] == timedelta(seconds=30)
