"""Every snippet in README and docs is true: YAML loads, commands exist, SQL and Python run, links lead somewhere."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from cdc.publisher import Publisher
from clock.record_log import NewEvent, append_events
from rules.loading import load_text
from timers.working_set import database_now
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings, read_settings

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#]+)\)")
_COMMAND = re.compile(r"(?:^|`)tocsin ([a-z]+)(?: ([a-z]+))?", re.MULTILINE)


def snippets(language: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for found, text in _FENCED.findall(page.read_text()):
            if found == language:
                yield page.name, text


@pytest.mark.parametrize(("page", "text"), list(snippets("yaml")))
def test_every_yaml_snippet_loads(page: str, text: str) -> None:
    assert load_text(text, file=page).documents


def commands() -> list[str]:
    return sorted({match.group(1) for page in PAGES for match in _COMMAND.finditer(page.read_text())})


def test_every_command_named_in_the_docs_exists() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", "from tocsin.cli import main; main()", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert commands()
    assert [command for command in commands() if f"\n  {command} " not in shown] == []


@pytest.mark.parametrize(
    ("page", "target"),
    [(page, target) for page in PAGES for target in _LINK.findall(page.read_text()) if "://" not in target],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_every_link_leads_somewhere(page: Path, target: str) -> None:
    assert (page.parent / target).exists()


@pytest.mark.parametrize(("page", "text"), list(snippets("sql")))
async def test_every_sql_snippet_runs(connection: Connection, page: str, text: str) -> None:
    cursor = await connection.execute(text.encode())
    assert cursor.rowcount >= 0, page


async def test_the_consumer_in_the_docs_prints_an_event(settings: Settings, connection: Connection) -> None:
    (script,) = [text for page, text in snippets("python") if page == "consuming.md"]
    script = script.replace('"tocsin.v1.', f'"{settings.subjects}.')
    now = await database_now(connection)
    event = NewEvent(now - timedelta(seconds=1), "scheduled", "schedule-fired", {"k": 1}, schedule="beat")
    await append_events(connection, [event])
    async with running(Service("cdc", Publisher(settings).run)):
        await _stream_exists(settings)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            script,
            env={**os.environ, "TOCSIN_NATS": settings.nats},
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
    assert process.returncode == 0
    assert output.decode().startswith("1 beat ")


async def _stream_exists(settings: Settings) -> None:
    from tests.streams import read_stream

    await read_stream(settings, 1)


def test_every_setting_named_in_the_docs_exists() -> None:
    named = {name for page in PAGES for name in re.findall(r"TOCSIN_([A-Z_]+)", page.read_text())}
    known = {name.upper() for name in type(read_settings()).model_fields}
    assert named - known == set()
