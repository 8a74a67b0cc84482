"""`tocsin prune`: what would go, what went, and what the doctor says of it."""

from __future__ import annotations

import psycopg
import pytest

from tests.cli.conftest import CommandLine
from tocsin.cli.rules.apply import _report_tenths
from tocsin.core.settings import Settings


def leave(settings: Settings, *names: str) -> None:
    """What counts against the limits of action_rules that are gone."""
    with psycopg.connect(settings.postgres, autocommit=True) as session:
        for name in names:
            session.execute("insert into tocsin.action_limit values (%s, '{}')", (name,))


def test_rows_are_counted_before_and_after(tocsin: CommandLine, settings: Settings) -> None:
    leave(settings, "one", "two")
    assert "would remove from action_limit: 2 rows" in tocsin("prune", "--dry-run").lines
    assert tocsin("prune", "--dry-run", "--json").json["rows"] == {"action_limit": 2}
    answer = tocsin("prune")
    assert "removed from action_limit: 2 rows" in answer.lines
    assert "action_limit: 2 rows" in answer.err.splitlines()
    leave(settings, "three")
    assert tocsin("prune", "--json").json["rows"] == {"action_limit": 1}
    found = {one["subject"]: one for one in tocsin("doctor", "--json", exit_code=1).json}
    assert found["retention"]["text"].endswith("it removed 1 of action_limit")
    assert found["retention"]["state"] == "ok"


def test_a_second_run_at_the_same_time_is_refused(tocsin: CommandLine, settings: Settings) -> None:
    with psycopg.connect(settings.postgres, autocommit=True) as session:
        session.execute("select pg_advisory_lock(hashtext('tocsin.prune'))")
        answer = tocsin("prune", exit_code=1)
    assert "another prune is running" in answer.err


def test_a_backlog_is_reported_in_tenths(capsys: pytest.CaptureFixture[str]) -> None:
    report = _report_tenths()
    for done in range(250, 5001, 250):
        report(done, 5000)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "processing overdue staleness checks: 5,000 of 5,000"
