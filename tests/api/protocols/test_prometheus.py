"""A real Prometheus sends its samples and its alerts; a real amtool lists alerts and silences them."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.api.protocols.debian_peers import peer
from tests.api.protocols.stored import stored_events, stored_series
from tests.api.running_api import RunningApi
from tests.ports import free_ports
from tests.rules.apply.apply_setup import put
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection

RULES = """
ingest_mapping: {name: own, metrics: [up], owner: prometheus, keep: [job]}
---
ingest_mapping: {name: alerts, sources: [alertmanager], owner: "{job}"}
---
event_rule:
  name: from-prometheus
  event: prometheus-alert
  per: [payload.fingerprint]
  fire: 'payload.status == "firing"'
  severity: event
  message: "{{ payload.annotations.summary }}"
"""
ALERTS = {
    "groups": [
        {
            "name": "test",
            "rules": [
                {
                    "alert": "IsUp",
                    "expr": "up == 1",
                    "labels": {"severity": "high"},
                    "annotations": {"summary": "{{ $labels.job }} is up"},
                }
            ],
        }
    ]
}


def configuration(url: str, token: str, port: int) -> dict[str, Any]:
    authorization = {"credentials": token}
    address = url.removeprefix("http://")
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yaml"],
        "scrape_configs": [{"job_name": "self", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}],
        "remote_write": [
            {
                "url": f"{url}/api/v1/write",
                "authorization": authorization,
                "queue_config": {"batch_send_deadline": "1s"},
            }
        ],
        "alerting": {
            "alertmanagers": [
                {
                    "path_prefix": "/alertmanager",
                    "authorization": authorization,
                    "static_configs": [{"targets": [address]}],
                }
            ]
        },
    }


@asynccontextmanager
async def prometheus(folder: Path, url: str, token: str) -> AsyncIterator[None]:
    (port,) = free_ports(1)
    (folder / "alerts.yaml").write_text(yaml.safe_dump(ALERTS))
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration(url, token, port)))
    with (folder / "log").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            peer("prometheus"),
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def amtool(url: str, token: str, *arguments: str) -> str:
    address = url.replace("http://", f"http://any:{token}@") + "/alertmanager"
    command = [str(peer("amtool")), f"--alertmanager.url={address}", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"HOME": "/nonexistent"}
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


async def test_prometheus_sends_samples_and_alerts_and_amtool_silences_the_alarm(
    instance: RunningApi, connection: Connection, tmp_path: Path
) -> None:
    peer("prometheus"), peer("amtool")
    await put(connection, RULES)
    _, token = await instance.mint("operator:*")
    async with prometheus(tmp_path, instance.url, token):
        series = await stored_series(connection, 1)
        assert series["prometheus", "up"]["labels"] == {"job": "self"}
        (fired,) = await stored_events(connection, "prometheus-alert", 1)
        assert (fired["owner"], fired["payload"]["annotations"]) == ("self", {"summary": "self is up"})

        async def is_open() -> bool:
            rows = await all_rows(connection, "select state from tocsin.alarm")
            return [row["state"] for row in rows] == ["open"]

        await eventually(is_open, "the alert of prometheus has opened an alarm")
    listed = json.loads(await amtool(instance.url, token, "alert", "query", "-o", "json"))
    assert [alert["labels"]["alertname"] for alert in listed] == ["from-prometheus"]
    assert listed[0]["labels"]["severity"] == "high"
    assert listed[0]["annotations"]["summary"] == "self is up"

    added = [
        "silence",
        "add",
        "alertname=from-prometheus",
        "owner=~se.+",
        "-d",
        "1h",
        "-c",
        "known",
        "-a",
        "ann",
    ]
    silence = (await amtool(instance.url, token, *added)).strip()
    (shown,) = json.loads(await amtool(instance.url, token, "silence", "query", "-o", "json"))
    assert (shown["id"], shown["comment"]) == (silence, "known (ann)")
    assert [matcher["value"] for matcher in shown["matchers"]] == ["from-prometheus", "se.+"]
    (alert,) = json.loads(await amtool(instance.url, token, "alert", "query", "--silenced", "-o", "json"))
    assert alert["status"]["silencedBy"] == [silence]
    assert json.loads(await amtool(instance.url, token, "alert", "query", "-o", "json")) == []
    await amtool(instance.url, token, "silence", "expire", silence)
    assert json.loads(await amtool(instance.url, token, "silence", "query", "-o", "json")) == []


async def test_amtool_adds_an_alert(instance: RunningApi, connection: Connection) -> None:
    peer("amtool")
    await put(connection, RULES)
    _, token = await instance.mint("sender:db-*", "viewer:db-*")
    added = ["alertname=DiskFull", "job=db-9", "severity=high", "--annotation=summary=full"]
    await amtool(instance.url, token, "alert", "add", *added)
    (event,) = await stored_events(connection, "prometheus-alert", 1)
    assert (event["owner"], event["payload"]["annotations"]) == ("db-9", {"summary": "full"})
