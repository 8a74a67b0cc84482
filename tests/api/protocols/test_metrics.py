"""Metrics over HTTP: what is stored, what is rejected, and the status that each client expects."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import aiohttp
import pytest
from influxdb_client.client.influxdb_client import InfluxDBClient
from influxdb_client.client.write_api import SYNCHRONOUS
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from tests.api.protocols.stored import dead_requests, stored_series
from tests.api.running_api import HttpAnswer, HttpClient, RunningApi, running_api
from tests.protocols.write_requests import write_request
from tests.rules.apply.apply_setup import put
from timers.working_set import database_now
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

SNAPPY = {"content-encoding": "snappy", "content-type": "application/x-protobuf"}
PROTOBUF = {"content-type": "application/x-protobuf"}
RULES = """
ingest_mapping: {name: node, sources: [prometheus], metrics: [node_*], owner: "{instance}", key: "node.{metric}"}
---
datapoint_type: {name: node, key: node.*, unit: s, dimensions: [cpu]}
"""


async def now_ms(connection: Connection) -> int:
    return int((await database_now(connection)).timestamp() * 1_000)


async def remote_write(
    client: HttpClient, connection: Connection, *series: tuple[dict[str, str], Any]
) -> HttpAnswer:
    at = await now_ms(connection)
    given = [(labels, [(value, at)]) for labels, value in series]
    return await client.request("POST", "/api/v1/write", data=write_request(given), headers=SNAPPY)


async def test_the_values_of_prometheus_become_datapoints_by_the_mapping(
    instance: RunningApi, connection: Connection
) -> None:
    await put(connection, RULES)
    prometheus = await instance.client("operator:web-*")
    cores = [
        ({"__name__": "node_cpu", "instance": "web-1", "cpu": str(core)}, core + 0.5) for core in range(2)
    ]
    unmapped = ({"__name__": "go_threads", "instance": "web-1"}, 7.0)
    answer = await remote_write(prometheus, connection, *cores, unmapped)
    assert (answer.status, answer.body) == (204, b"")
    series = await stored_series(connection, 2)
    assert {key: row["value"] for (_, key), row in series.items()} == {
        'node.node_cpu{cpu="0"}': 0.5,
        'node.node_cpu{cpu="1"}': 1.5,
    }


async def test_a_part_that_is_rejected_is_named_and_the_rest_is_stored(
    instance: RunningApi, connection: Connection
) -> None:
    prometheus = await instance.client("operator:web-*", name="prom")
    answer = await remote_write(
        prometheus,
        connection,
        ({"__name__": "up", "instance": "web-1"}, 1.0),
        ({"__name__": "up", "instance": "db-1"}, 1.0),
        ({"__name__": "up"}, 1.0),
        ({"__name__": "up", "instance": "web-2"}, float("nan")),
    )
    assert answer.status == 400, "prometheus does not repeat a request that was answered with 4xx"
    assert "'prom' may not send data for owner 'db-1'" in answer.text
    assert "has no label 'instance'" in answer.text
    assert list(await stored_series(connection, 1)) == [("web-1", "up")]
    (letter,) = await dead_requests(instance.settings)
    assert "'db-1'" in letter["body"]
    assert letter["subject"] == "POST /api/v1/write"


async def test_a_repeated_request_is_stored_once_and_leaves_one_dead_letter(
    instance: RunningApi, connection: Connection
) -> None:
    prometheus = await instance.client("operator:web-*")
    body = write_request(
        [({"__name__": "up", "instance": "web-1"}, [(1.0, await now_ms(connection))]), ({}, [(1.0, 5)])]
    )
    for _ in range(3):
        answer = await prometheus.request("POST", "/api/v1/write", data=body, headers=SNAPPY)
        assert answer.status == 400
    await prometheus.request("POST", "/write", data="door,host=web-9 open=t")
    await stored_series(connection, 2)
    rows = await connection.execute("select count(*) from tocsin.datapoint where key = 'up'")
    assert await rows.fetchone() == (1,)
    assert len(await dead_requests(instance.settings)) == 1


async def test_a_server_that_is_away_is_503_which_every_client_repeats(
    settings: Settings, connection: Connection
) -> None:
    """No worker has run, so no stream takes the values."""
    async with running_api(settings) as api:
        client = await api.client("operator:*")
        assert (
            await remote_write(client, connection, ({"__name__": "up", "instance": "web-1"}, 1.0))
        ).status == 503
        assert (await client.request("POST", "/write", data="m,host=a f=1")).status == 503


@pytest.mark.parametrize(
    ("path", "headers", "body", "status"),
    [
        ("/api/v1/write", SNAPPY, b"nonsense", 422),
        ("/api/v1/write", SNAPPY, b"\0" * 1_100_000, 413),
        ("/api/v1/write", {"content-encoding": "gzip"}, b"", 415),
        (
            "/api/v1/write",
            {"content-type": "application/x-protobuf;proto=io.prometheus.write.v2.Request"},
            b"",
            415,
        ),
        ("/otlp/v1/metrics", PROTOBUF, b"\xff\xff", 422),
        ("/otlp/v1/metrics", {"content-type": "text/plain"}, b"", 415),
        ("/otlp/v1/metrics", {"content-type": "application/json"}, b"{", 422),
        ("/otlp/v1/metrics", PROTOBUF | {"content-encoding": "gzip"}, b"x", 422),
        ("/write", {}, b"m", 400),
        ("/write?precision=days", {}, b"m f=1", 400),
    ],
)
async def test_what_cannot_be_read_is_4xx(
    api: RunningApi, path: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    client = await api.client("operator:*")
    answer = await client.request("POST", path, data=body, headers=headers)
    assert answer.status == status, answer


@pytest.mark.parametrize("path", ["/api/v1/write", "/otlp/v1/metrics", "/write", "/api/v2/write"])
async def test_no_path_takes_data_from_a_stranger_or_a_viewer(api: RunningApi, path: str) -> None:
    assert (await (await api.with_token(None)).post(path)).status == 401
    assert (await (await api.client("viewer:*")).post(path)).status == 403


async def test_the_client_of_influx_writes_points(instance: RunningApi, connection: Connection) -> None:
    _, token = await instance.mint("operator:web-*")

    def write() -> None:
        with InfluxDBClient(url=instance.url, token=token, org="any", enable_gzip=True) as client:
            fields = {"idle": 98.5, "state": "o k", "hot": False}
            point = {"measurement": "cpu", "tags": {"host": "web-1"}, "fields": fields}
            client.write_api(write_options=SYNCHRONOUS).write("any-bucket", record=point)

    await asyncio.to_thread(write)
    series = await stored_series(connection, 3)
    assert {key: row["value"] for (_, key), row in series.items()} == {
        "cpu.idle": 98.5,
        "cpu.state": "o k",
        "cpu.hot": False,
    }


async def test_version_1_of_influx_logs_in_with_a_password(
    instance: RunningApi, connection: Connection
) -> None:
    _, token = await instance.mint("operator:web-*")
    stranger = await instance.with_token(None)
    assert (await stranger.get("/ping")).status == 204
    body = gzip.compress(b"mem,host=web-1 used=5i 1700000000\nmem,host=web-1 used=x")
    headers = {"authorization": aiohttp.encode_basic_auth("telegraf", token), "content-encoding": "gzip"}
    answer = await stranger.request("POST", "/write?db=x&precision=s", data=body, headers=headers)
    assert answer.status == 400
    assert answer.json["error"].startswith("partial write: line 2:")


async def test_the_exporter_of_opentelemetry_exports_metrics(
    instance: RunningApi, connection: Connection
) -> None:
    _, token = await instance.mint("operator:shop")

    def export() -> None:
        exporter = OTLPMetricExporter(
            endpoint=f"{instance.url}/otlp/v1/metrics", headers={"authorization": f"Bearer {token}"}
        )
        reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
        provider = MeterProvider([reader], Resource.create({"service.name": "shop"}))
        meter = provider.get_meter("test")
        meter.create_counter("orders").add(3, {"country": "nl"})
        meter.create_histogram("latency", explicit_bucket_boundaries_advisory=[1, 5]).record(2.5)
        provider.shutdown()

    await asyncio.to_thread(export)
    series = await stored_series(connection, 5)
    assert series["shop", "orders"]["value"] == 3
    assert series["shop", "orders"]["labels"]["country"] == "nl"
    assert series["shop", "latency.sum"]["value"] == 2.5


async def test_otlp_in_json_reports_what_was_rejected(instance: RunningApi) -> None:
    client = await instance.client("operator:shop")
    point = {"asInt": "1", "attributes": [{"key": "service.name", "value": {"stringValue": "other"}}]}
    body = {
        "resourceMetrics": [
            {"scopeMetrics": [{"metrics": [{"name": "m", "gauge": {"dataPoints": [point]}}]}]}
        ]
    }
    answer = await client.post("/otlp/v1/metrics", body)
    assert answer.status == 200
    assert answer.json["partialSuccess"]["rejectedDataPoints"] == "1"
    assert "may not send data for owner 'other'" in answer.json["partialSuccess"]["errorMessage"]
