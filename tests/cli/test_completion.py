"""Completion in real shells: installed by the command, asked for with the TAB key."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

SHELLS = {
    "bash": ("bash", "--noprofile", "-i"),
    "zsh": ("zsh", "-i"),
    "fish": ("fish", "-i"),
}
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str | None]:
    """An environment whose home directory is empty, and whose PATH finds this `tocsin`."""
    return {"HOME": str(tmp_path), "PATH": PATH, "PS1": "$ ", "COLUMNS": None, "LINES": None}


def _environment(home: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**os.environ, **home}.items() if value is not None}


def _install(shell: str, home: dict[str, str | None]) -> str:
    # Typer detects the shell that runs the command. A second command keeps the shell from replacing itself.
    command = [shell, "-c", "tocsin --install-completion; true"]
    return subprocess.run(
        command, env=_environment(home), capture_output=True, text=True, check=True, timeout=60
    ).stdout


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("shell", "typed", "rest"),
    [
        *((shell, "tocsin al", "arms") for shell in SHELLS),
        ("bash", "tocsin schedule pau", "se"),
        ("bash", "tocsin rules action_", "rule"),
        ("bash", "tocsin alarms --sev", "erity"),
    ],
)
def test_a_shell_completes_with_tab(home: dict[str, str | None], shell: str, typed: str, rest: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert f"{shell} completion installed in" in _install(shell, home)
    with Terminal(SHELLS[shell], home) as terminal:
        terminal.press(b"echo re''ady\n")
        while "ready" not in terminal.written:
            assert terminal.read(), terminal.written
        terminal.written = ""
        terminal.press(f"{typed}\t".encode())
        while rest not in terminal.written.rpartition(typed[-2:])[2]:
            assert terminal.read(), terminal.written
            if "\a" in terminal.written:
                # The first TAB in zsh only loads the completion, and rings.
                terminal.written = terminal.written.replace("\a", "")
                terminal.press(b"\t")


def test_commands_are_completed_without_renamed_ones(home: dict[str, str | None]) -> None:
    words = {"_TOCSIN_COMPLETE": "complete_bash", "COMP_WORDS": "tocsin ", "COMP_CWORD": "1"}
    done = subprocess.run(
        ["tocsin"],
        env={**_environment(home), **words},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert {"alarms", "rules", "channels", "dead-letters", "parse-time", "up"} <= set(done.stdout.split())
    assert not {"dead", "when", "channel"} & set(done.stdout.split())


def test_the_script_of_the_completion_is_printed(home: dict[str, str | None]) -> None:
    done = subprocess.run(
        ["bash", "-c", "tocsin --show-completion; true"],
        env=_environment(home),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "complete -o default -F _tocsin_completion tocsin" in done.stdout
