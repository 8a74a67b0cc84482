"""`tocsin prune`: what would be removed, what was removed, and the line of the doctor about it."""

from __future__ import annotations

import psycopg

from tests.cli.conftest import CommandLine
from tocsin.core.settings import Settings


def leave_rows(settings: Settings, *names: str) -> None:
    """Counters of rate limits whose action_rules are gone."""
    with psycopg.connect(settings.postgres, autocommit=True) as session:
        for name in names:
            session.execute("insert into tocsin.action_limit values (%s, '{}')", (name,))


def test_rows_are_counted_before_and_after(tocsin: CommandLine, settings: Settings) -> None:
    leave_rows(settings, "one", "two")
    assert "would remove from action_limit: 2 rows" in tocsin("prune", "--dry-run").lines
    assert tocsin("prune", "--dry-run", "--json").json["rows"] == {"action_limit": 2}
    answer = tocsin("prune")
    assert "removed from action_limit: 2 rows" in answer.lines
    assert "action_limit: 2 rows" in answer.err.splitlines()
    leave_rows(settings, "three")
    assert tocsin("prune", "--json").json["rows"] == {"action_limit": 1}
    found = {check["subject"]: check for check in tocsin("doctor", "--json", exit_code=1).json}
    assert found["retention"]["text"].endswith("removed 1 of action_limit")
    assert found["retention"]["state"] == "ok"


def test_a_second_run_at_the_same_time_is_refused(tocsin: CommandLine, settings: Settings) -> None:
    with psycopg.connect(settings.postgres, autocommit=True) as session:
        session.execute("select tocsin.claim_prune()")
        answer = tocsin("prune", exit_code=1)
    assert "another prune is running" in answer.err


def test_a_dry_run_lists_what_would_be_removed_and_why_the_rest_stays(tocsin: CommandLine) -> None:
    shown = tocsin("prune", "--dry-run").lines
    assert shown == [
        "nothing is older than its retention",
        "kept records 0 to 999999: records are still added to it",
    ]
    found = tocsin("prune", "--json").json
    assert (found["ranges"], found["days"], found["dropped"]) == ([], [], [])
