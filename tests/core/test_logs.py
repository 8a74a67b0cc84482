"""Logs: a line for people, an object for machines, on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import structlog

from tocsin.core.logs import configure_logs
from tocsin.core.settings import Settings


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def log_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_machines_get_one_object_per_line_with_the_traceback_in_it(
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


def test_people_get_a_line_and_elsewhere_than_on_a_terminal_it_is_json(
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


def test_what_is_below_the_level_is_not_said(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings(log_format="json", log_level="warning"))
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    (line,) = log_lines(capsys)
    assert json.loads(line)["event"] == "loud"
