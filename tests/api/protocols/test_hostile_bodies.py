"""Bodies of any bytes at every door: none is an error of the server, and the data of others goes on."""

from __future__ import annotations

import gzip
import json
import random
import uuid
from collections.abc import Iterator
from datetime import timedelta

import cramjam

from tests.api.protocols.stored import stored_series
from tests.api.protocols.test_alertmanager import AM, alert
from tests.api.running_api import RunningApi
from tests.protocols.write_requests import write_request
from tests.rules.apply.apply_setup import put
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection

DOORS = {
    "/api/v1/write": "application/x-protobuf",
    "/otlp/v1/metrics": "application/x-protobuf",
    "/write": "text/plain",
    "/api/v2/write": "text/plain",
    f"{AM}/alerts": "application/json",
    f"{AM}/silences": "application/json",
    "/cloudevents": "application/cloudevents+json",
    "/ping/{token}/backup/fail": "text/plain",
}
RULES = "heartbeat: {name: backup, every: 1d, owners: [mallory]}"
BOMB = bytes(20_000_000)


def bodies() -> Iterator[tuple[bytes, str]]:
    """Each body with its content encoding."""
    chance = random.Random(17)
    labels = {f"label_{number}": "x" * 200 for number in range(2_000)}
    yield b"", ""
    yield b"\xff\xfe\0" * 1000, ""
    for size in (1, 30, 3_000):
        yield chance.randbytes(size), ""
        yield bytes(cramjam.snappy.compress_raw(chance.randbytes(size))), ""
    yield write_request([({"__name__": "up", "instance": "mallory", **labels}, [(1.0, 0)])]), ""
    yield write_request([({"__name__": "up", "instance": "mallory"}, [(1.0, 1)] * 20_000)])[:-7], ""
    yield bytes(cramjam.snappy.compress_raw(BOMB)), ""
    yield gzip.compress(BOMB, 9), "gzip"
    yield gzip.compress(b"up 1")[:-3], "gzip"
    yield b"[" * 100_000, ""
    yield b'{"a":' * 50_000, ""
    yield json.dumps([{"labels": labels}] * 3).encode(), ""
    yield b'{"specversion":"1.0","id":1e999,"source":null,"type":"\\ud800","data_base64":"*"}', ""
    yield b"m,host=mallory " + b",".join(b"f%d=1" % number for number in range(12_000)), ""
    yield b"m,host=mallory v=1e999999 9" + b"9" * 5_000, ""


async def test_no_body_is_an_error_of_the_server_and_the_data_of_others_goes_on(
    instance: RunningApi, connection: Connection
) -> None:
    await put(connection, RULES)
    mallory = await instance.client("sender:mallory", "responder:*")
    for path, media_type in DOORS.items():
        for number, (body, encoding) in enumerate(bodies()):
            headers = {"content-type": media_type} | ({"content-encoding": encoding} if encoding else {})
            where = path.format(token=mallory.token)
            answer = await mallory.request("POST", where, data=body, headers=headers)
            assert answer.status < 500, (path, number, answer)
            assert str(mallory.token) not in answer.text
    neighbour = await instance.client("sender:web-*")
    assert (await neighbour.request("POST", "/write", data=b"cpu,host=web-1 load=3")).status == 204

    async def is_stored() -> bool:
        rows = await all_rows(connection, "select value from tocsin.current_value where owner = 'web-1'")
        return [row["value"] for row in rows] == [3]

    await eventually(is_stored, "the value of the neighbour is stored")
    alerts = [await alert(connection, "web-1", timedelta(minutes=4))]
    assert (await neighbour.post(f"{AM}/alerts", alerts)).status == 200

    async def is_recorded() -> bool:
        rows = await all_rows(connection, "select type from tocsin.event where owner = 'web-1'")
        return [row["type"] for row in rows] == ["prometheus-alert"]

    await eventually(is_recorded, "the alert of the neighbour is recorded")
    assert instance.service.restarts == 0


async def test_what_one_token_sends_by_any_door_is_stored_for_its_owners_only(
    instance: RunningApi, connection: Connection
) -> None:
    await put(connection, RULES)
    mine = await instance.client("sender:web-*")
    event = {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/x", "type": "door-opened"}
    attempts = {
        "/api/v1/write": write_request([({"__name__": "up", "instance": "mallory"}, [(1.0, 0)])]),
        "/write": b"cpu,host=mallory load=3",
        "/api/v2/write": b"cpu,host=mallory load=3",
        f"{AM}/alerts": json.dumps([await alert(connection, "mallory", timedelta(minutes=4))]).encode(),
        "/cloudevents": json.dumps({**event, "owner": "mallory", "data": {}}).encode(),
        "/ping/{token}/backup": b"",
    }
    for path, body in attempts.items():
        headers = {"content-type": DOORS.get(path, "text/plain")}
        answer = await mine.request("POST", path.format(token=mine.token), data=body, headers=headers)
        assert answer.status in (400, 404), (path, answer)
    assert (await mine.request("POST", "/write", data=b"cpu,host=web-1 load=3")).status == 204
    series = await stored_series(connection, 1)
    assert {owner for owner, _ in series} == {"web-1"}
    rows = await connection.execute("select owner from tocsin.event where owner = 'mallory'")
    assert await rows.fetchall() == []
