"""The snippets of docs/client.md run as printed, and Python and SQL do the same."""

from __future__ import annotations

import re

import psycopg
import pytest

from tests.paths import ROOT
from tocsin.core.settings import Settings

PAGE = ROOT / "docs" / "client.md"
_CONTENT = "select owner, name, recurrence, type, payload, action, status, generation, created_by from tocsin.schedule"


def snippet(language: str, number: int) -> str:
    texts = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert len(texts) == 2
    return str(texts[number])


def run_python(settings: Settings, monkeypatch: pytest.MonkeyPatch, number: int = 0) -> None:
    monkeypatch.setenv("TOCSIN_POSTGRES", settings.postgres)
    exec(compile(snippet("python", number), str(PAGE), "exec"), {"__name__": "__main__"})


def run_sql(connection: psycopg.Connection, number: int = 0) -> list[list[tuple[object, ...]]]:
    cursor = connection.execute(snippet("sql", number).encode())
    answers = []
    while True:
        if cursor.description is not None:
            answers.append(cursor.fetchall())
        if not cursor.nextset():
            return answers


def test_the_python_snippet_schedules_looks_and_cancels(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_python(settings, monkeypatch)
    assert capsys.readouterr().out.splitlines() == [
        "active 2037-03-10 14:00:00+00:00 False",
        "2037-03-10 14:00:00+00:00 ['invoice-42']",
        "True",
    ]


def test_the_sql_snippet_schedules_looks_and_cancels(settings: Settings) -> None:
    with psycopg.connect(settings.postgres, autocommit=True) as connection:
        once, schedules, cancelled = run_sql(connection)
    assert [(row[1], row[2], row[4]) for row in once] == [("active", 1, False)]
    assert schedules == [("billing", "invoice-42", "active", 1)]
    assert cancelled == [(True,)]


def test_both_snippets_leave_the_same_schedule(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(settings.postgres, autocommit=True) as connection:
        run_sql(connection)
        by_sql = connection.execute(_CONTENT.encode()).fetchall()
        for table in ("audit", "schedule", "timer"):
            connection.execute(f"delete from tocsin.{table}".encode())
        run_python(settings, monkeypatch)
        assert connection.execute(_CONTENT.encode()).fetchall() == by_sql
    assert len(by_sql) == 1


def test_the_snippets_about_changes_move_replace_and_repeat(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_python(settings, monkeypatch, 1)
    with psycopg.connect(settings.postgres, autocommit=True) as connection:
        assert [answer[0][0] for answer in run_sql(connection, 1)[:3]] == [1, 2, 3]
        rows = connection.execute(
            "select name, status, generation from tocsin.schedule order by name"
        ).fetchall()
    assert rows == [
        ("order-7", "active", 4),
        ("order-8", "active", 3),
        ("poll", "active", 1),
        ("report", "active", 1),
    ]
