"""`tocsin.client.testing`: records for handlers, and a system whose clock a test advances."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

from tests.paths import ROOT
from tocsin.client.testing import Servers, TocsinSystem, make_event, make_step, tocsin_system

PAGE = ROOT / "docs" / "testing-your-service.md"


def snippet(language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    return str(text)


def test_the_snippet_about_records_runs() -> None:
    exec(compile(snippet("python"), str(PAGE), "exec"), {})


def test_a_record_has_the_fields_that_are_given() -> None:
    event = make_event("trip", {"a": 1}, owner="plant-7", seq=9, severity=4)
    assert (event.type, event.data, event.owner, event.seq, event.severity) == (
        "trip",
        {"a": 1},
        "plant-7",
        9,
        4,
    )
    assert event.facts()["origin"] == "external"
    assert make_event().origin == "scheduled"
    assert make_step("deploy", attempt=2).attempt == 2


def test_a_misspelt_field_of_a_record_is_an_error() -> None:
    with pytest.raises(TypeError, match="Event has no ownr"):
        make_event("trip", ownr="plant-7")


def test_the_example_of_the_page_passes_with_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(snippet("python pytest"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "1 passed" in answer.stdout


RULES = """
schedule: {name: hourly, cron: "0 * * * *", action: say}
---
action: {name: say, steps: [{wait: {for: 10m}}, {emit: {type: said}}]}
"""


def test_a_system_fires_each_occurrence_at_its_own_instant(servers: Servers, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(RULES)
    with tocsin_system(servers) as system:
        asyncio.run(_advance_three_hours(system, tmp_path / "r.yaml"))


async def _advance_three_hours(system: TocsinSystem, rules: Path) -> None:
    await system.apply(rules)
    assert await system.advance(timedelta(hours=3)) == 3
    async with await psycopg.AsyncConnection.connect(system.postgres) as connection:
        cursor = await connection.execute(
            "select ts from tocsin.event where type = 'schedule-fired' order by seq"
        )
        instants = [row[0] for row in await cursor.fetchall()]
        assert [later - earlier for earlier, later in pairwise(instants)] == [timedelta(hours=1)] * 2
        await system.set_now(connection)
        cursor = await connection.execute("select tocsin.instant()")
        row = await cursor.fetchone()
        assert row is not None
        assert row[0] == system.now
