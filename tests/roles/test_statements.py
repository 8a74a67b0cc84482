"""Each component may run the statements of its packages. `explain` checks the rights and runs nothing."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from tests.paths import ROOT
from tests.roles.owned_database import as_role
from tocsin.core.db import Connection, statement
from tocsin.core.settings import Settings
from tocsin.metrics.database_metrics import read_database_metrics

PACKAGES = {
    "tocsin_clock": ["clock", "clock/retention"],
    "tocsin_cdc": ["cdc"],
    "tocsin_worker": [
        "rules/actions",
        "rules/alarms",
        "rules/calc",
        "rules/dispatch",
        "rules/documents",
        "rules/health",
        "rules/lanes",
        "rules/suppression",
    ],
    "tocsin_author": ["rules/apply", "rules/documents"],
}
OF_OTHERS = {
    "cdc/adopt": "an operator adopts a stream",
    "cdc/adopt_inside": "an operator adopts a stream",
    "rules/actions/request_channel_test": "an operator requests the test of a channel",
}
_EXPLAINABLE = re.compile(rb"explain \(generic_plan\) (select|insert|update|delete|with)\b")
_PARAMETER = re.compile(r"%(?:\((\w+)\))?[sbt]")


def statements(role: str) -> list[Path]:
    files = (file for package in PACKAGES[role] for file in sorted((ROOT / package / "sql").glob("*.sql")))
    return [file for file in files if name_of(file) not in OF_OTHERS]


def name_of(file: Path) -> str:
    return str(file.parent.parent.relative_to(ROOT) / file.stem)


def explained(file: Path) -> bytes:
    """The statement as a generic plan: parameters become $1, $2."""
    text = "\n".join(line for line in file.read_text().splitlines() if not line.lstrip().startswith("--"))
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1] or f'at {match.start()}', len(names) + 1)}"

    return f"explain (generic_plan) {_PARAMETER.sub(number, text).replace('%%', '%')}".encode()


async def refusal(session: Connection, file: Path) -> str | None:
    text = explained(file)
    if not _EXPLAINABLE.match(text):
        return None
    try:
        await session.execute(text)
    except psycopg.errors.InsufficientPrivilege as error:
        return f"{name_of(file)}: {error.diag.message_primary}"
    return None


@pytest.mark.parametrize("role", PACKAGES)
async def test_a_component_may_run_its_statements(settings: Settings, role: str) -> None:
    session = await as_role(settings, role)
    await session.execute(statement("rules.lanes/create_staging"))
    files = statements(role)
    assert len(files) > 10
    assert [problem for file in files if (problem := await refusal(session, file))] == []
    await session.close()


async def test_what_belongs_to_others_is_refused(settings: Settings) -> None:
    for name in OF_OTHERS:
        role = next(role for role, packages in PACKAGES.items() if str(Path(name).parent) in packages)
        session = await as_role(settings, role)
        file = ROOT / Path(name).parent / "sql" / f"{Path(name).name}.sql"
        assert await refusal(session, file) is not None, name
        await session.close()


@pytest.mark.parametrize("role", ["tocsin_clock", "tocsin_cdc", "tocsin_worker"])
async def test_each_service_reads_the_metrics_of_the_database(settings: Settings, role: str) -> None:
    session = await as_role(settings, role)
    assert (await read_database_metrics(session)).families
    await session.close()
