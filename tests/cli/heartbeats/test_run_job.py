"""`tocsin run-job` without a server: the command runs all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import TOCSIN


def run_job(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TOCSIN, "run-job", "backup", "--wait", "0", *words],
        cwd=tmp_path,
        env=_environment(tmp_path),
        input="what comes in\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    return {**kept, "TOCSIN_DATA": str(tmp_path)}


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_and_the_output_are_those_of_the_command(tmp_path: Path, code: int) -> None:
    ended = run_job(tmp_path, "--", "sh", "-c", f"cat; echo wrong >&2; exit {code}")
    assert (ended.returncode, ended.stdout) == (code, "what comes in\n")
    assert "wrong\n" in ended.stderr
    assert "the end of backup was not reported" in ended.stderr


def test_a_command_that_does_not_exist_is_127(tmp_path: Path) -> None:
    ended = run_job(tmp_path, "--", "no-such-command")
    assert ended.returncode == 127
    assert "no-such-command cannot be run" in ended.stderr


def test_a_signal_reaches_the_command(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7));"
        " print('ready', flush=True); time.sleep(60)"
    )
    job = subprocess.Popen(
        [*TOCSIN, "run-job", "backup", "--wait", "0", "--", sys.executable, "-c", script],
        cwd=tmp_path,
        env=_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert job.stdout is not None
    assert job.stdout.readline() == "ready\n"
    job.send_signal(signal.SIGTERM)
    assert job.wait(60) == 7
    job.stdout.close()


def test_a_command_that_a_signal_ends_is_128_and_its_number(tmp_path: Path) -> None:
    assert run_job(tmp_path, "--", "sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL
