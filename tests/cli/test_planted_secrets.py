"""Planted passwords and secrets: no command, error, export, log or traceback shows one."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
import pytest
import structlog

from tests.cli.conftest import CommandLine, environment_of
from tocsin.core.logs import configure_logs
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

PASSWORD = "S3cret/Db:Passw0rd"
TOKEN = "S3cretToken-of-the-ticket-system"
RULES = """
channel: {name: ops, webhook: {url: "https://hooks.example/x", headers: {Authorization: {secret: token}}}}
---
event_rule: {name: hot, datapoint: room.temperature, fire: "value > 5.0", severity: high, notify: [ops]}
"""
COMMANDS = [
    ("doctor",),
    ("doctor", "--json"),
    ("audit",),
    ("audit", "--json"),
    ("audit", "verify"),
    ("events", "--json"),
    ("rules", "--yaml"),
    ("channels", "--json"),
    ("actions", "--json"),
    ("dead-letters", "--json"),
    ("alarms", "--json"),
    ("notifications", "--json"),
    ("series", "--json"),
    ("timers", "--json"),
    ("cdc", "status"),
    ("cdc", "verify"),
    ("roles", "check"),
    ("prune", "--dry-run"),
    ("nonsense",),
]


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    before, handlers = structlog.get_config(), list(logging.getLogger().handlers)
    yield
    structlog.configure(**before)
    logging.getLogger().handlers[:] = handlers


@pytest.fixture
def planted(settings: Settings) -> Settings:
    """The servers trust local users, so any password is accepted."""
    there = psycopg.conninfo.make_conninfo(settings.postgres, password=PASSWORD)
    return settings.model_copy(update={"postgres": there})


def hidden(settings: Settings) -> list[str]:
    password = urlsplit(settings.nats.split(",")[0]).password
    assert password
    return [PASSWORD, quote(PASSWORD, safe=""), TOKEN, password]


def test_no_command_shows_a_planted_secret(planted: Settings, tmp_path: Path) -> None:
    secrets = {"TOCSIN_SECRET_TOKEN": TOKEN, "TOCSIN_METRICS_TOKEN": TOKEN}
    tocsin = CommandLine({**environment_of(planted), **secrets})
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    answers = [tocsin("plan", str(rules)), tocsin("apply", str(rules), "--yes")]
    recording = tmp_path / "recording"
    answers.append(tocsin.answer("export", str(recording), "--since", "1h"))
    answers += [tocsin.answer(*words) for words in COMMANDS]
    written = "".join(
        path.read_bytes().decode("latin-1")
        for path in tmp_path.rglob("*")
        if path.is_file() and path != rules
    )
    text = written + "".join(answer.out + answer.err for answer in answers)
    assert "hooks.example" in text
    for secret in hidden(planted):
        assert secret not in text


@pytest.mark.parametrize("broken", ["postgres", "nats"])
def test_no_error_about_an_address_shows_its_password(planted: Settings, broken: str) -> None:
    address = urlsplit(planted.nats.split(",")[0])
    wrong = urlunsplit(address._replace(netloc=f"{address.username}:{address.password}@127.0.0.1:1"))
    values = {
        "postgres": f"postgresql://postgres:{quote(PASSWORD, safe='')}@127.0.0.1:1/tocsin",
        "nats": wrong,
    }
    there = planted.model_copy(update={broken: values[broken]})
    tocsin = CommandLine(environment_of(there))
    answers = [tocsin.answer(*words) for words in (("doctor",), ("dead-letters",), ("alarms",))]
    text = "".join(answer.out + answer.err for answer in answers)
    assert "127.0.0.1" in text
    for secret in hidden(planted):
        assert secret not in text


@pytest.mark.parametrize("log_format", ["console", "json"])
async def test_no_crash_of_a_service_shows_a_password(
    planted: Settings, capsys: pytest.CaptureFixture[str], log_format: str
) -> None:
    there = planted.model_copy(update={"log_format": log_format})
    configure_logs(there)
    crashed = asyncio.Event()
    texts: list[str] = []

    async def crash() -> None:
        local = there
        crashed.set()
        try:
            raise RuntimeError(f"a defect near {local!r} and {local.postgres}")
        except RuntimeError as error:
            texts.append(traceback.format_exc().replace(local.postgres, ""))
            raise RuntimeError("a defect") from error

    async with running(Service("clock", crash)):
        await crashed.wait()
    captured = capsys.readouterr()
    text = captured.out + captured.err + "".join(texts) + repr(there) + str(there)
    assert "service crashed" in text
    for secret in hidden(there):
        assert secret not in text
