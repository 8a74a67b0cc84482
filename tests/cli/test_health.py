"""`tocsin health`: systems with their health and the members that decide it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.cli.conftest import CommandLine
from tocsin.core.db import Connection


def test_health_is_listed_with_the_members_that_decide_it(tocsin: CommandLine, tmp_path: Path) -> None:
    assert tocsin("health").out.startswith("no systems are applied")
    rules = tmp_path / "rules.yaml"
    rules.write_text("system:\n  name: cooling\n  members:\n    - {owner: plant-7, key: pump.flow}\n")
    tocsin("apply", str(rules))
    header, line = tocsin("health").lines
    assert header.split() == ["SYSTEM", "HEALTH", "REASON", "SINCE", "MEMBERS"]
    assert line.split()[:3] == ["cooling", "unknown", "no-data"]
    assert line.endswith("pump.flow of plant-7: no-data")
    (found,) = tocsin("health", "--json").json
    assert (found["system"], found["health"], found["members"]) == ("cooling", "unknown", 1)
    assert found["waiting_since"] is None

    (unknown,) = tocsin("series", "--unknown", "--json").json
    assert (unknown["owner"], unknown["key"], unknown["by"]) == ("plant-7", "pump.flow", "system cooling")
    assert tocsin("series", "--unknown").lines[1].split() == ["plant-7", "pump.flow", "system", "cooling"]


async def test_health_that_is_late_is_reported(
    tocsin: CommandLine, tmp_path: Path, connection: Connection
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("system: {name: cooling, members: [{owner: plant-7, key: dsp.load}]}\n")
    await asyncio.to_thread(tocsin, "apply", str(rules))
    await connection.execute(
        "insert into tocsin.member_observation (owner, at, what, subject)"
        " values ('plant-7', '2026-03-02Z', 'fresh', 'dsp.load')"
    )
    answer = await asyncio.to_thread(tocsin, "health")
    assert answer.lines[-1] == "cooling: health is late, because workers are behind: see `tocsin doctor`"
