"""The snippets of docs/api.md run, in their order, against a running API."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from tests.api.recorded import put_alarm, put_series
from tests.api.running_api import RunningApi
from tocsin.core.db import Connection

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq")
async def test_every_snippet_of_the_page_runs(api: RunningApi, connection: Connection) -> None:
    await put_alarm(connection, "plant-7")
    await put_series(connection, "plant-7")
    _, token = await api.mint("admin:*")
    snippets = re.findall(r"^```bash api\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(snippets) == 5
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        "\n".join(snippets),
        env={"URL": api.url, "TOKEN": token, "PATH": "/usr/local/bin:/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-2000:]
