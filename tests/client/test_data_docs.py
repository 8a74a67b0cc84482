"""The snippets of docs/data.md run as printed, and their data is stored."""

from __future__ import annotations

import json
import re
import sys
from asyncio import create_subprocess_exec

from rules.lanes.external_events import EventIngester
from schemas.wire.ingest_event import read_ingest_event
from tests.paths import ROOT
from tests.records import events
from tests.rules.apply.apply_setup import rows
from tests.rules.lanes.lane_setup import lane_worker, make_stream, wait_for_rows
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)


async def run(settings: Settings, *command: str) -> None:
    """Run the snippets in a shell, in the namespace of this test."""
    given = {"TOCSIN_NATS": settings.nats, "TOCSIN_NAMESPACE": settings.namespace}
    process = await create_subprocess_exec(*command, env={**given, "PATH": ""})
    assert await process.wait() == 0


async def test_the_data_of_the_snippets_is_stored(settings: Settings, connection: Connection) -> None:
    await make_stream(settings)
    async with running(lane_worker("one", settings)):
        for script in snippets("python"):
            script = script.replace("tocsin.v1.", f"{settings.subjects}.")
            await run(settings, sys.executable, "-c", script)
        await wait_for_rows(connection, "tocsin.datapoint", 1004)
    values = {row["key"]: row["value"] for row in await rows(connection, "current_value")}
    assert values == {"dsp.temperature": 67, "door": "open"}


async def test_the_event_of_the_page_is_ingested_once(settings: Settings, connection: Connection) -> None:
    (body,) = snippets("json")
    shown = read_ingest_event(body.encode())
    (command,) = [text for text in snippets("console") if text.startswith("tocsin emit ")]
    assert f"--key {shown.id}" in command
    assert json.dumps(shown.payload) in command
    async with running(Service("ingest", EventIngester(settings).run)):
        program = "from tocsin.cli import main; main()"
        words = ["emit", shown.type, "--owner", shown.owner, "--payload", json.dumps(shown.payload)]
        for _ in range(2):
            await run(settings, sys.executable, "-c", program, *words, "--key", shown.id)
        await wait_for_rows(connection, "tocsin.event", 1)
    (event,) = await events(connection)
    assert (event["id"], event["payload"]) == (shown.event_id, {"order": 17})
