"""`tocsin-client` has the interface of `tocsin.client`, and nothing of the engine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from asyncio.subprocess import PIPE
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tocsin.client
from tests.client.service import publish
from tests.supply.production import link_package
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "clients" / "python"
ABSENT = ("rules", "schemas", "timers", "clock", "cdc", "migrations", "cel_expr_python", "jinja2", "typer")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", PROJECT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The python of an environment with the wheel and the dependencies that it declares."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)  # noqa: S202 - built here
    for name in sorted(required(project_table()["dependencies"])):
        link_package(name, packages)
    return folder / "bin" / "python"


def build(target: str, project: Path, folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", folder],
        cwd=project,
        check=True,
        capture_output=True,
    )
    (built,) = folder.iterdir()
    return built


def project_table() -> dict[str, list[str]]:
    table: dict[str, list[str]] = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    return table


def required(requirements: list[str], extras: frozenset[str] = frozenset()) -> set[str]:
    """The names of all distributions that requirements need, also those of dependencies."""
    names: set[str] = set()
    for text in requirements:
        requirement = Requirement(text)
        wanted = [{"extra": extra} for extra in (*extras, "")]
        if requirement.marker is not None and not any(requirement.marker.evaluate(each) for each in wanted):
            continue
        names |= {requirement.name}
        names |= required(distribution(requirement.name).requires or [], frozenset(requirement.extras))
    return names


def names_in(archive: Path) -> list[str]:
    return zipfile.ZipFile(archive).namelist()


def test_the_wheel_adds_one_top_level_package(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in names_in(wheel)}
    assert tops == {"tocsin", "tocsin_client-0.1.0.dist-info"}


def test_the_wheel_has_no_module_of_the_engine(wheel: Path) -> None:
    packages = {"/".join(name.split("/")[:2]) for name in names_in(wheel) if name.startswith("tocsin/")}
    assert packages == {
        *("tocsin/__init__.py", "tocsin/py.typed"),
        *("tocsin/client", "tocsin/core", "tocsin/nats_access"),
    }
    assert [name for name in names_in(wheel) if name.startswith("tocsin/nats_access/")] == [
        "tocsin/nats_access/__init__.py",
        "tocsin/nats_access/roles.py",
    ]


def test_a_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    archive = build("sdist", PROJECT, tmp_path / "sdist")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (project,) = tmp_path.glob("tocsin_client-*")
    assert sorted(names_in(build("wheel", project, tmp_path / "wheel"))) == sorted(names_in(wheel))


def test_its_version_and_bounds_are_those_of_tocsin() -> None:
    engine = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    client = project_table()
    assert client["version"] == engine["version"]
    assert set(client["dependencies"]) <= set(engine["dependencies"])


def test_every_promised_name_is_there_without_the_engine(python: Path) -> None:
    code = (
        "import importlib.util, sys, tocsin.client as client\n"
        "print(sorted(client.__all__))\n"
        "print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
    )
    # Elsewhere, because python finds the packages of its working directory.
    printed = subprocess.check_output(
        [python, "-c", code, *ABSENT], text=True, cwd=python.parent
    ).splitlines()
    assert printed == [str(sorted(tocsin.client.__all__)), "[]"]


def test_a_service_schedules_and_reads_with_it(python: Path, settings: Settings, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    arguments = [settings.postgres, settings.nats, settings.namespace]
    done = subprocess.run(
        [python, program, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["active", "active", "True"]


async def test_a_service_replays_records_with_it(
    python: Path, settings: Settings, connection: Connection, tmp_path: Path
) -> None:
    await publish(settings, connection, 3)
    program = tmp_path / "program.py"
    program.write_text(REPLAY)
    arguments = [settings.nats, settings.namespace]
    done = await asyncio.create_subprocess_exec(
        python, program, *arguments, cwd=tmp_path, stdout=PIPE, stderr=PIPE
    )
    printed, errors = await done.communicate()
    assert (printed.split(), errors) == ([b"1", b"2", b"3"], b"")


PROGRAM = """
import asyncio, sys
import psycopg
from tocsin.client import get_schedule, schedule_cancel, schedule_once, schedule_recurring


async def main():
    postgres = sys.argv[1]
    async with await psycopg.AsyncConnection.connect(postgres) as connection:
        print((await schedule_once(connection, owner="shop", name="order", at="in 2 days")).status)
        await schedule_recurring(connection, owner="shop", name="report", cron="0 8 * * MON-FRI", tz="Europe/London")
        print((await get_schedule(connection, "shop", "report")).status)
        print(await schedule_cancel(connection, owner="shop", name="order"))


asyncio.run(main())
"""
REPLAY = """
import asyncio, sys
from tocsin.client import Events, replay


async def main():
    async for event in replay(Events(namespace=sys.argv[2]), nats=sys.argv[1]):
        print(event.seq)


asyncio.run(main())
"""
