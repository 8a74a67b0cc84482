"""`tocsin env`, addresses of a running `up`, and variables that are no settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest

from tests.cli.conftest import CommandLine
from tocsin.client import Producer
from tocsin.core.addresses import publish_addresses
from tocsin.core.settings import Settings, unknown_variables


@pytest.fixture
def up(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """The addresses of a `tocsin up` in TOCSIN_DATA, and none in the environment."""
    for name in ("TOCSIN_POSTGRES", "TOCSIN_NATS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TOCSIN_DATA", str(tmp_path))
    monkeypatch.setenv("TOCSIN_NAMESPACE", settings.namespace)
    with publish_addresses(tmp_path, f"postgresql:///x?host={tmp_path}&port=1", settings.nats):
        yield settings


def test_env_prints_lines_that_a_shell_evaluates(alone: CommandLine, up: Settings, tmp_path: Path) -> None:
    postgres = quote(f"postgresql:///x?host={tmp_path}&port=1")
    assert alone("env").lines == [
        f"export TOCSIN_POSTGRES={postgres}",
        f"export TOCSIN_NATS={up.nats}",
        "export TOCSIN_NATS_INBOX=_INBOX",
        f"export TOCSIN_NAMESPACE={up.namespace}",
    ]


def test_env_without_servers_says_what_to_do(alone: CommandLine, up: Settings, tmp_path: Path) -> None:
    with publish_addresses(tmp_path, "", ""):
        pass
    assert alone("env", exit_code=1).err == (
        "tocsin: TOCSIN_POSTGRES and TOCSIN_NATS are not known: run `tocsin up` in this directory, or set the "
        "variables\n"
    )


async def test_a_producer_finds_the_servers_of_up(up: Settings) -> None:
    async with Producer() as producer:
        assert producer is not None


def test_a_variable_that_is_no_setting_is_reported(
    tocsin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_LEASE_TTL", "3")
    monkeypatch.setenv("TOCSIN_SECRET_SMTP", "x")
    monkeypatch.setenv("TOCSIN_DATA", "/tmp/x")
    assert unknown_variables() == {"TOCSIN_LEASE_TTL": "TOCSIN_LEASE_TTL_S"}
    shown = tocsin("schedules")
    assert "unknown setting" in shown.err
    assert "did you mean TOCSIN_LEASE_TTL_S?" in shown.err
