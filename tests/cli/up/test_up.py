"""`tocsin up` as a process: it fires, continues, refuses a second one, and leaves nothing behind."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import CommandLine
from tests.cli.terminal import TOCSIN
from tests.embedded.launchers import users_of
from tests.wait import eventually_sync
from tocsin.cli.up.up import _interruptible

_COMMAND = (*TOCSIN, "up")
_WITHIN_S = 120.0
_RULES = """\
schedule:
  name: heartbeat
  every: 1s
  tz: Europe/London
---
action_rule: {name: show, on: event, when: 'schedule == "heartbeat"', action: say}
---
action:
  name: say
  log: {message: "alive"}
"""


class Up:
    """The process, and its lines as they come."""

    def __init__(self, *words: str | Path, cwd: Path) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_")}
        self.process = subprocess.Popen(
            [*_COMMAND, *map(str, words)],
            cwd=cwd,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.seen: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The next line that matches."""
        while True:
            line = self._lines.get(timeout=_WITHIN_S)
            assert line is not None, f"ended before a line matched {pattern!r}: {self.seen} {self.errors()}"
            self.seen.append(line)
            found = re.search(pattern, line)
            if found:
                return found

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(_WITHIN_S)

    def errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def _up(*words: str | Path, cwd: Path) -> Iterator[Up]:
    up = Up(*words, cwd=cwd)
    try:
        yield up
    finally:
        up.close()


def _directory(folder: Path) -> Path:
    """A working directory with a space in its name, and rules in it."""
    directory = folder / "my instance"
    directory.mkdir()
    # As root, Postgres runs as another user, who must be able to enter.
    for path in (folder, directory):
        path.chmod(0o755)
    (directory / "rules.yaml").write_text(_RULES, encoding="utf-8")
    return directory


def test_up_fires_refuses_a_second_stops_and_continues(
    tmp_path: Path, alone: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = _directory(tmp_path)
    monkeypatch.chdir(directory)
    with _up("--rules", "rules.yaml", cwd=directory) as up:
        up.wait_for("^new record log, starting at seq 1$")
        up.wait_for("^rules: rules.yaml: 3 added$")
        up.wait_for(r"^next    heartbeat  .* (GMT|BST)  (in [01]s|due now)$")
        fired = up.wait_for(
            r"^fired   heartbeat  \w{3} [-0-9]+ [.:0-9]+ (GMT|BST)  [0-9]+ ms late  seq ([0-9]+)$"
        )
        up.wait_for("^action  say  completed  alive  seq [0-9]+$")
        # Other commands in the same directory find the servers by themselves.
        assert int(fired[2]) in [row["seq"] for row in alone("events", "--limit", "1000", "--json").json]
        second = subprocess.run(_COMMAND, cwd=directory, capture_output=True, text=True, check=False)
        assert second.returncode == 1
        assert second.stderr.splitlines()[1:] == [
            f"tocsin: the data directory '{directory / '.tocsin'}' is in use by process {up.process.pid}: "
            "stop it, or choose another with --data"
        ]
        assert up.end(signal.SIGINT) == 0
        assert up.errors() == "starting postgres and nats in '.tocsin' ...\nstopped\n"
        assert "\x1b" not in "".join(up.seen)
        assert users_of(directory / ".tocsin") == {}
        assert "TOCSIN_POSTGRES is not set" in alone("events", exit_code=2).err

    last = int(fired[2])
    with _up("--rules", "rules.yaml", cwd=directory) as up:
        continuing = up.wait_for(r"^continuing at seq ([0-9]+); (.*)$")
        assert int(continuing[1]) > last
        up.wait_for("^rules: rules.yaml: 3 unchanged$")
        shown = up.wait_for(r"^(fired|action|missed) .*  seq ([0-9]+)$")
        assert int(shown[2]) >= int(continuing[1])
        assert up.end(signal.SIGTERM) == 0
        assert users_of(directory / ".tocsin") == {}


def test_up_reports_what_was_missed_while_it_was_stopped(tmp_path: Path, alone: CommandLine) -> None:
    directory = _directory(tmp_path)
    with _up("--rules", "rules.yaml", cwd=directory) as up:
        up.wait_for("^fired ")
        assert up.end(signal.SIGINT) == 0
    _let_a_day_pass(directory)
    with _up(cwd=directory) as up:
        up.wait_for("^continuing at seq [0-9]+; came due meanwhile: heartbeat$")
        missed = up.wait_for(r"^missed  heartbeat  ([0-9]+) times, .* to .*  \(.*\)  seq [0-9]+$")
        assert int(missed[1]) >= 86_000
        up.wait_for("^fired   heartbeat ")
        up.process.kill()
        up.process.wait()
        eventually_sync(lambda: users_of(directory / ".tocsin") == {}, "no process is left after kill -9")


def _let_a_day_pass(directory: Path) -> None:
    """The tick's time and the schedule's anchor move back, as if `up` had been stopped for a day."""
    from tocsin.embedded import embedded_postgres

    with (
        embedded_postgres(directory / ".tocsin") as postgres,
        psycopg.connect(postgres.url, dbname="tocsin") as db,
    ):
        db.execute(
            "update tocsin.timer set fire_at = fire_at - interval '1 day', nominal_at = nominal_at - interval '1 day',"
            " last_nominal_at = last_nominal_at - interval '1 day'"
        )
        db.execute(
            "update tocsin.schedule set last_occurrence = last_occurrence - interval '1 day',"
            " recurrence = jsonb_set(recurrence, '{anchor}', to_jsonb(to_char("
            " ((recurrence ->> 'anchor')::timestamptz - interval '1 day') at time zone 'UTC',"
            """ 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')))"""
        )


def test_a_bad_rule_file_lists_its_errors_and_starts_nothing_further(tmp_path: Path) -> None:
    directory = _directory(tmp_path)
    (directory / "bad.yaml").write_text(
        "schedule:\n  name: x\n  crn: 1\n---\nschedule: {name: y}\n", encoding="utf-8"
    )
    with _up("--rules", "rules.yaml", "bad.yaml", cwd=directory) as up:
        assert up.process.wait(_WITHIN_S) == 1
        first, *problems = up.errors().splitlines()
        assert first.startswith("starting ")
        assert problems[0].startswith("bad.yaml:3:3: unknown key 'crn' in schedule 'x', did you mean 'cron'?")
        assert problems[-1].startswith("bad.yaml:5:")
        assert up.process.stdout is not None
        assert users_of(directory / ".tocsin") == {}


def test_a_server_that_stops_ends_up_with_the_path_of_its_log(tmp_path: Path) -> None:
    directory = _directory(tmp_path)
    with _up(cwd=directory) as up:
        up.wait_for("^new record log")
        nats = next(pid for pid, name in users_of(directory / ".tocsin").items() if name.startswith("nats"))
        os.kill(nats, signal.SIGKILL)
        assert up.process.wait(_WITHIN_S) == 2
        log = directory / ".tocsin" / "nats.log"
        assert up.errors().splitlines()[-1] == (
            f"tocsin: nats has stopped, its log is '{log}': start `tocsin up` again"
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_during_the_start_ends_it_like_any_other(tmp_path: Path, number: signal.Signals) -> None:
    directory = _directory(tmp_path)
    with _up(cwd=directory) as up:
        eventually_sync((directory / ".tocsin" / "launcher.lock").exists, "the start has begun")
        assert up.end(number) == 0
        assert up.errors().splitlines()[-1] == "stopped"
        assert users_of(directory / ".tocsin") == {}


def test_a_missing_rule_file_or_a_bad_setting_is_reported_before_any_server_starts(
    tmp_path: Path, alone: CommandLine
) -> None:
    missing = alone("up", "--data", str(tmp_path / "data"), "--rules", "missing.yaml", exit_code=1)
    assert missing.err == "missing.yaml:1:1: the file does not exist\n"
    alone.environment["TOCSIN_METRICS"] = "localhost"
    assert alone("up", "--data", str(tmp_path / "data"), exit_code=1).err.startswith(
        "tocsin: TOCSIN_METRICS='localhost' is not an address to listen on: "
    )
    assert not (tmp_path / "data").exists()


def test_a_signal_is_remembered_although_the_exception_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)

    class Dropping:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with _interruptible() as interrupted:
        Dropping()
        assert interrupted == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before
