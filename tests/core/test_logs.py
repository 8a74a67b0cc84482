"""Logs on stderr: text lines on a terminal, JSON objects elsewhere."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import structlog
from pydantic import TypeAdapter, ValidationError

from tocsin.core.logs import configure_logs
from tocsin.core.settings import Settings


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before, handlers = structlog.get_config(), list(logging.getLogger().handlers)
    yield
    structlog.configure(**before)
    logging.getLogger().handlers[:] = handlers


def log_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_json_logs_have_one_object_per_line_with_the_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs(Settings(log_format="json"))
    try:
        raise ValueError("ünexpected")
    except ValueError as error:
        structlog.get_logger().exception("service crashed", service="clock", error=error)
    (line,) = log_lines(capsys)
    entry = json.loads(line)
    assert (entry["event"], entry["level"], entry["service"]) == ("service crashed", "error", "clock")
    assert entry["error"] == "ValueError: ünexpected"
    assert entry["timestamp"].endswith("Z")
    assert "Traceback" in entry["exception"]


def test_logs_are_text_on_a_terminal_and_json_elsewhere(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs(Settings(log_format="console"))
    structlog.get_logger().info("clock leads", epoch=7)
    (line,) = log_lines(capsys)
    assert "clock leads" in line
    assert "epoch=7" in line
    configure_logs(Settings(log_format="auto"))
    structlog.get_logger().info("clock leads", epoch=7)
    (line,) = log_lines(capsys)
    assert json.loads(line)["epoch"] == 7


def test_messages_below_the_level_are_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings(log_format="json", log_level="warning"))
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    (line,) = log_lines(capsys)
    assert json.loads(line)["event"] == "loud"


class _Role(StrEnum):
    clock = "clock"


class _Level(Enum):
    high = 4


def _invalid() -> ValidationError:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(int).validate_python("x")
    return raised.value


_ID = UUID("e3e00202-0000-4000-8000-000000000000")
_EST = timezone(timedelta(hours=-5))


@pytest.mark.parametrize(
    ("value", "logged"),
    [
        (ValueError("it is wrong"), "ValueError: it is wrong"),
        (KeyError("name"), "KeyError: 'name'"),
        (_ID, str(_ID)),
        (datetime(2026, 3, 2, 8, 0, tzinfo=_EST), "2026-03-02T13:00:00Z"),
        (datetime(2026, 3, 2, 8, 0), "2026-03-02T08:00:00"),
        (date(2026, 3, 2), "2026-03-02"),
        (timedelta(seconds=1.5), 1.5),
        (b"\xffab", "\\xffab"),
        (bytearray(b"ab"), "ab"),
        (Path("/tmp/x"), "/tmp/x"),
        (_Role.clock, "clock"),
        (_Level.high, 4),
        (float("nan"), "nan"),
        (True, True),
        (None, None),
        ((1, "a"), [1, "a"]),
        ({_ID: [ValueError("inner"), {"at": datetime(2026, 3, 2, tzinfo=UTC)}]}, None),
    ],
    ids=str,
)
def test_json_holds_plain_values(capsys: pytest.CaptureFixture[str], value: Any, logged: Any) -> None:
    configure_logs(Settings(log_format="json"))
    structlog.get_logger().warning("seen", value=value)
    (line,) = log_lines(capsys)
    entry = json.loads(line, parse_constant=pytest.fail)
    if isinstance(value, dict):
        logged = {str(_ID): ["ValueError: inner", {"at": "2026-03-02T00:00:00Z"}]}
    assert entry["value"] == logged


def test_an_error_of_several_lines_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings(log_format="json"))
    structlog.get_logger().warning("document cannot be used", error=_invalid())
    (line,) = log_lines(capsys)
    assert json.loads(line)["error"].startswith("ValidationError: 1 validation error")


def test_messages_of_libraries_have_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings(log_format="json"))
    configure_logs(Settings(log_format="json"))
    try:
        raise OSError("reset")
    except OSError:
        logging.getLogger("nats.aio.client").exception("nats: %s", "encountered error")
    logging.getLogger("nats.aio.client").info("chatter")
    (line,) = log_lines(capsys)
    entry = json.loads(line)
    assert (entry["event"], entry["level"]) == ("nats: encountered error", "error")
    assert "OSError: reset" in entry["exception"]


def test_logs_are_written_to_the_given_file(capsys: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()
    configure_logs(Settings(log_format="json"), file)
    structlog.get_logger().warning("ours", id=_ID)
    logging.getLogger("library").warning("theirs")
    assert log_lines(capsys) == []
    assert [json.loads(line)["event"] for line in file.getvalue().splitlines()] == ["ours", "theirs"]


PLANTED = "S3cretDbPass"


@pytest.mark.parametrize("format", ["console", "json"])
@pytest.mark.parametrize("from_library", [False, True])
def test_a_crash_shows_no_credentials_in_any_format(
    capsys: pytest.CaptureFixture[str], format: Any, from_library: bool
) -> None:
    """F6: local variables of a traceback, the text of an error and the repr of the settings."""
    settings = Settings(
        postgres=f"postgresql://tocsin:{PLANTED}@db/tocsin",
        nats=f"nats://cdc:{PLANTED}-nats@a:4222,nats://cdc:{PLANTED}-nats@b:4222",
        log_format=format,
    )
    configure_logs(settings)

    def connect(conninfo: str) -> None:
        raise ValueError(f"bad conninfo {conninfo} of {settings!r}")

    try:
        connect(settings.postgres)
    except ValueError as error:
        if from_library:
            logging.getLogger("library").exception("failed with %s", settings)
        else:
            structlog.get_logger().exception("service crashed", error=error, settings=settings)
    captured = capsys.readouterr()
    assert "ValueError" in captured.err
    assert PLANTED not in captured.err


def test_a_password_in_key_value_form_is_hidden_too(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings(postgres=f"host=db user=tocsin password='{PLANTED} x'", log_format="json"))
    structlog.get_logger().error("failed", detail=f"connecting with {PLANTED} x")
    assert PLANTED not in capsys.readouterr().err


def test_no_value_moves_the_cursor_of_a_console(capsys: pytest.CaptureFixture[str]) -> None:
    """F25: a subject of NATS may hold an escape sequence."""
    configure_logs(Settings(log_format="console"))
    log = structlog.get_logger()
    log.warning("set aside\x1b[2J", subject="a\x1b]0;owned\x07", **{"k\x1b[1m": "\x9b31m\u202egnp"})
    try:
        raise ValueError("\x1b[31mred\nsecond line")
    except ValueError:
        log.exception("crashed")
    printed = capsys.readouterr().err
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(printed)
    assert "Traceback (most recent call last):\n" in printed
