"""Every command: its help, its errors, its exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import psycopg
import pytest
import typer

from tests.cli.conftest import CommandLine
from tests.cli.terminal import TOCSIN
from tocsin.cli.app import app
from tocsin.core.settings import Settings

_NEEDS_DATABASE = (
    *(["upcoming"], ["schedules"], ["timers"], ["events"], ["audit"], ["migrate"], ["run", "clock"]),
    *(["schedule", "show", "x"], ["schedule", "pause", "x"], ["schedule", "add", "x", "--every", "5s"]),
)
_HEAVY = ("asyncio", "psycopg", "nats", "pydantic", "rich", "structlog", "croniter", "cel_expr_python")
_SECTIONS = ("Rules", "Look", "Act", "Operate")


def _commands() -> list[list[str]]:
    group = typer.main.get_command(app)
    found: list[list[str]] = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        below = getattr(command, "commands", None)
        if below is None or command.invoke_without_command:
            found.append([name])
        found += [[name, inner] for inner in below or ()]
    return found


@pytest.mark.parametrize("words", _commands(), ids=" ".join)
def test_every_command_has_help_with_an_example(alone: CommandLine, words: list[str]) -> None:
    assert f"tocsin {' '.join(words)}" in alone(*words, "--help").out.partition("Example")[2]


def _help(width: int, *words: str) -> str:
    environment = {**os.environ, "COLUMNS": str(width)}
    return subprocess.run(
        [*TOCSIN, *words, "--help"], env=environment, capture_output=True, text=True, check=True
    ).stdout


def _sections(help_text: str) -> dict[str, list[str]]:
    """The names of the commands by section."""
    sections: dict[str, list[str]] = {}
    for paragraph in help_text.split("\n\n"):
        title, *lines = paragraph.splitlines() or [""]
        if title.removesuffix(":") in _SECTIONS:
            names = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
            sections[title.removesuffix(":")] = names
    return sections


def test_help_lists_every_command_in_its_section() -> None:
    sections = _sections(_help(100))
    assert tuple(sections) == _SECTIONS
    assert sections["Rules"][:3] == ["check", "plan", "apply"]
    assert sections["Look"][0] == "alarms"
    assert sections["Act"] == [
        *("ack", "snooze", "resolve", "silence", "send", "emit", "checkin", "run-job", "schedule")
    ]
    assert sections["Operate"][0] == "up"
    listed = [name for names in sections.values() for name in names]
    group = typer.main.get_command(app)
    assert sorted(listed) == sorted(group.commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("words", [(), ("schedule",), ("cdc",), ("actions",)], ids=" ".join)
def test_help_uses_the_width_and_cuts_no_summary(words: tuple[str, ...], width: int) -> None:
    shown = _help(width, *words)
    assert "..." not in shown.replace("[ARGS]...", "").replace("FILES...", "")
    assert max(map(len, shown.splitlines())) <= min(width, 120)


@pytest.mark.parametrize("width", [100, 140])
def test_each_summary_fits_on_one_line(width: int) -> None:
    commands = _help(width).partition("Rules:")[2].partition("Exit codes")[0]
    assert [line for line in commands.splitlines() if line.startswith("    ")] == []


def test_help_explains_the_exit_codes() -> None:
    assert "Exit codes: 0 done, 1 refused" in _help(100)


@pytest.mark.parametrize(
    ("words", "new"),
    [
        (("dead",), "dead-letters"),
        (("when", "tomorrow"), "parse-time"),
        (("channel", "test", "ops"), "channels"),
        (("schedule", "get", "x"), "schedule show"),
    ],
    ids=str,
)
def test_a_former_name_is_an_error_that_names_the_new_one(
    alone: CommandLine, words: tuple[str, ...], new: str
) -> None:
    assert alone(*words, exit_code=2).err.splitlines()[-1].endswith(f"is now 'tocsin {new}'.")


def test_help_and_the_registration_of_all_commands_import_nothing_heavy() -> None:
    script = f"""
        import sys
        from tocsin.cli.app import app
        app(["--help"], standalone_mode=False)
        print(sorted(set({_HEAVY!r}) & set(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_is_that_of_the_distribution(alone: CommandLine) -> None:
    assert alone("--version").out == f"tocsin {version('tocsin')}\n"


def test_a_misspelt_command_is_a_usage_error_with_a_suggestion(alone: CommandLine) -> None:
    assert "Did you mean 'upcoming'" in alone("upcomming", exit_code=2).err


@pytest.mark.parametrize("words", _NEEDS_DATABASE, ids=" ".join)
def test_without_a_named_postgres_the_error_is_one_line_with_the_setting(
    alone: CommandLine, words: list[str]
) -> None:
    assert alone(*words, exit_code=2).err == (
        "tocsin: TOCSIN_POSTGRES is not set: set TOCSIN_POSTGRES, for example to "
        "postgresql://user@localhost:5432/tocsin, or run `tocsin up`, which starts its own server\n"
    )


def test_an_unreachable_postgres_is_one_line_with_its_address_and_exit_code_2(
    alone: CommandLine, tmp_path: Path
) -> None:
    alone.environment["TOCSIN_POSTGRES"] = f"postgresql://me:secret@/tocsin?host={tmp_path}"
    answer = alone("events", exit_code=2)
    assert answer.err.startswith(f"tocsin: cannot reach postgres at {tmp_path}:5432/tocsin (")
    assert answer.err.endswith("): start it, or set TOCSIN_POSTGRES to a reachable server\n")
    assert answer.err.count("\n") == 1
    assert "secret" not in answer.err


def test_an_unreachable_nats_is_one_line_with_its_address_and_exit_code_2(alone: CommandLine) -> None:
    alone.environment["TOCSIN_NATS"] = "nats://127.0.0.1:1"
    answer = alone("tail", exit_code=2)
    assert answer.err.startswith("tocsin: cannot reach nats at nats://127.0.0.1:1 (")
    assert answer.err.endswith("): start it, or set TOCSIN_NATS to a reachable server\n")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("audit", "--limit", "0"), "'--limit' / '-n': must be greater than or equal to 1, not '0'"),
        (("cdc", "verify", "--from", "x"), "'--from': must be a whole number, not 'x'"),
        (("run", "nope"), "'role': 'nope' is not one of 'clock', 'cdc', 'worker', 'api'."),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_an_invalid_value_is_refused_in_the_words_of_other_errors(
    alone: CommandLine, words: tuple[str, ...], said: str
) -> None:
    assert alone(*words, exit_code=2).err.splitlines()[-1] == f"Error: Invalid value for {said}"


def test_a_setting_out_of_range_is_named_with_its_value(tocsin: CommandLine) -> None:
    tocsin.environment["TOCSIN_TICK_MS"] = "0"
    assert tocsin("events", exit_code=1).err == (
        "tocsin: TOCSIN_TICK_MS='0': write a number from 1 to 1,000 (longest sleep of the clock in ms. A timer that "
        "is armed for the near future may be noticed this late)\n"
    )


@pytest.mark.parametrize("kind", [psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout])
def test_a_session_that_postgres_ends_is_one_line(
    kind: type[psycopg.Error], tocsin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object, **__: object) -> None:
        raise kind("server closed the connection\nsecond line")

    monkeypatch.setattr("timers.working_set.database_now", lost)
    assert tocsin("upcoming", exit_code=2).err == (
        "tocsin: postgres closed the connection or did not answer (server closed the connection): try again\n"
    )


def test_a_defect_keeps_its_traceback(tocsin: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("timers.working_set.database_now", broken)
    with pytest.raises(ZeroDivisionError):
        tocsin("upcoming")


def test_commands_find_the_servers_of_an_up_in_the_same_directory_or_the_one_that_is_named(
    settings: Settings, alone: CommandLine, tmp_path: Path
) -> None:
    from tocsin.core.addresses import publish_addresses

    (tmp_path / ".tocsin").mkdir()
    given = psycopg.conninfo.conninfo_to_dict(settings.postgres)
    # An address is accepted only below the directory.
    (tmp_path / ".tocsin" / "postgres").symlink_to(str(given["host"]))
    address = (
        f"postgresql://postgres@/{given['dbname']}?host={tmp_path}/.tocsin/postgres&port={given['port']}"
    )
    with publish_addresses(tmp_path / ".tocsin", address, settings.nats):
        assert alone("schedules").out.startswith("no schedules: ")
        alone.environment["TOCSIN_POSTGRES"] = f"postgresql:///other?host={tmp_path}"
        assert f"{tmp_path}:5432/other" in alone("schedules", exit_code=2).err
        alone.environment |= {"TOCSIN_POSTGRES": None, "TOCSIN_DATA": str(tmp_path)}
        assert "TOCSIN_POSTGRES is not set" in alone("schedules", exit_code=2).err
        alone.environment["TOCSIN_DATA"] = str(tmp_path / ".tocsin")
        assert alone("schedules").out.startswith("no schedules: ")
    assert "TOCSIN_POSTGRES is not set" in alone("schedules", exit_code=2).err
    (tmp_path / ".tocsin" / "addresses.json").write_text("{")
    assert "TOCSIN_POSTGRES is not set" in alone("schedules", exit_code=2).err


def test_a_reader_that_closes_the_output_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*TOCSIN, "next", "--every", "5s", "-n", "9999"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
