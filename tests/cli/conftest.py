"""Commands run in this process, with a database and a NATS namespace of the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import structlog
from typer.testing import CliRunner

from tocsin.cli.app import app
from tocsin.core.settings import Settings


class Answer:
    def __init__(self, exit_code: int, out: str, err: str) -> None:
        self.exit_code = exit_code
        self.out = out
        self.err = err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    def __init__(self, environment: dict[str, str | None]) -> None:
        self.environment = environment

    def __call__(self, *words: str, exit_code: int = 0) -> Answer:
        answer = self.answer(*words)
        assert answer.exit_code == exit_code, f"{words}: {answer.out}{answer.err}"
        return answer

    def answer(self, *words: str) -> Answer:
        result = CliRunner().invoke(app, words, env=self.environment, prog_name="tocsin")
        # The runner's streams end with the command; a logger that kept one would fail the next test.
        structlog.reset_defaults()
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)


def environment_of(settings: Settings) -> dict[str, str | None]:
    return {
        "TOCSIN_POSTGRES": settings.postgres,
        "TOCSIN_POSTGRES_ROLES": str(settings.postgres_roles),
        "TOCSIN_NATS": settings.nats,
        "TOCSIN_NAMESPACE": settings.namespace,
        "TOCSIN_LEASE_TTL_S": str(settings.lease_ttl_s),
        "NO_COLOR": "1",
    }


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """No server is named, and no `up` runs in the working directory."""
    monkeypatch.chdir(tmp_path)
    return CommandLine({"TOCSIN_POSTGRES": None, "TOCSIN_NATS": None})


@pytest.fixture
def tocsin(settings: Settings, alone: CommandLine) -> CommandLine:
    """Postgres ends a session that idles in a transaction for half the TTL; no stall of the machine lasts that long."""
    return CommandLine({**environment_of(settings), "TOCSIN_LEASE_TTL_S": "20"})
