"""The TypeScript client: its types follow the API, and delays of XState survive restarts of their process.

Needs node, and xstate from npm. Where either is missing, the tests of the delays are skipped with the reason.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from cdc.publisher import Publisher
from clients.typescript.generate import DOCUMENT, TYPES, types_text
from clock.service import Clock
from tests.api.running_api import HttpClient, RunningApi
from tests.wait import eventually
from tocsin.core.service import Service, running

PROJECT = Path(__file__).parents[2] / "clients" / "typescript"


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with xstate."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node or npm is not installed: the TypeScript client is NOT tested here")
    folder = tmp_path_factory.mktemp("typescript") / "client"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("node_modules"))
    installed = subprocess.run(
        ["npm", "ci", "--loglevel=error", "--no-audit", "--no-fund"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    if installed.returncode != 0:
        pytest.skip(f"npm cannot install xstate, the adapter is NOT tested here: {installed.stderr[-300:]}")
    return folder


async def run(project: Path, client: HttpClient, state: Path, command: str) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *("node", "test/delays.mjs", client.url, str(client.token), state, command),
        cwd=project,
        stdout=PIPE,
        stderr=PIPE,
    )
    async with asyncio.timeout(120):
        printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    answer: dict[str, Any] = json.loads(printed)
    return answer


def test_the_types_are_those_of_the_committed_document() -> None:
    assert TYPES.read_text(encoding="utf-8") == types_text(json.loads(DOCUMENT.read_text(encoding="utf-8")))


async def test_a_delay_fires_although_its_process_was_away(
    project: Path, api: RunningApi, tmp_path: Path
) -> None:
    shop = await api.client("author:shop", "viewer:*")
    state = tmp_path / "state.json"
    async with running(
        Service("clock", Clock(api.settings).run), Service("cdc", Publisher(api.settings).run)
    ):
        assert await run(project, shop, state, "WAIT") == {"value": "waiting", "fired": 0}

        async def has_fired() -> bool:
            page = await shop.get("/v1/records?after=0&query=type:xstate-delay")
            return bool(page.json["items"])

        await eventually(has_fired, "the delay has fired while no process listened")
        assert await run(project, shop, state, "await") == {"value": "reminded", "fired": 1}


async def test_a_state_that_is_left_cancels_its_delay(project: Path, api: RunningApi, tmp_path: Path) -> None:
    shop = await api.client("author:shop", "viewer:*")
    state = tmp_path / "state.json"
    assert (await run(project, shop, state, "LONG"))["value"] == "far"
    (pending,) = (await shop.get("/v1/schedules?owner=shop")).json["items"]
    assert (pending["status"], pending["payload"]["system"]) == ("active", "order-7")
    assert (await run(project, shop, state, "CANCEL"))["value"] == "idle"
    (cancelled,) = (await shop.get("/v1/schedules?owner=shop")).json["items"]
    assert cancelled["status"] == "cancelled"
    assert (await run(project, shop, state, "LONG"))["value"] == "far"
    (again,) = (await shop.get("/v1/schedules?owner=shop")).json["items"]
    assert (again["status"], again["id"]) == ("active", pending["id"])
    await run(project, shop, state, "STOP")
    (stopped,) = (await shop.get("/v1/schedules?owner=shop")).json["items"]
    assert stopped["status"] == "cancelled"
