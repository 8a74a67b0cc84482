"""Runs a command of the command line on files of a request, in a process that can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psycopg.conninfo import make_conninfo
from pydantic import BaseModel, ConfigDict, Field

from tocsin.api.problems import ProblemError, ProblemRaised
from tocsin.core.settings import PREFIX, Settings

MAX_RUNNING = 2
MAX_WAITING = 20
MAX_FILES = 200
_MEMORY_BYTES = 2 * 1024**3
_MAX_OUTPUT = 32 * 1024 * 1024
_UNREACHABLE = 2
_PROGRAM = "from tocsin.cli import main; main()"
_PROGRESS = re.compile(rb"progress ([0-9]{1,3})")
_LONGEST_LINE = 100
_NEEDS_NO_SERVER = ("check", "test")
_SERVER_SETTINGS = ("postgres", "nats")


ReportPercent = Callable[[int], None]
"""Called with the percentage of the work that is done."""


class RuleFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        max_length=200,
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*\.ya?ml$",
        description="Path of the file, as in messages about it.",
    )
    text: str


@dataclass
class RuleCommands:
    """The processes of one API."""

    settings: Settings
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_RUNNING))
    _waiting: int = 0

    async def run(
        self,
        command: str,
        files: Sequence[RuleFile],
        words: Sequence[str],
        *,
        within_s: float,
        report: ReportPercent | None = None,
    ) -> Any:
        """The JSON answer of a command. Raises the problem that the command reports.

        A caller that is cancelled ends the process. `report` gets the part that is done.
        """
        if self._waiting >= MAX_WAITING:
            raise ProblemRaised("too-many", "too many rule files are being processed", remedy="try again")
        self._waiting += 1
        try:
            async with self._turns:
                return await self._run(command, files, words, within_s, report)
        finally:
            self._waiting -= 1

    async def _run(
        self,
        command: str,
        files: Sequence[RuleFile],
        words: Sequence[str],
        within_s: float,
        report: ReportPercent | None,
    ) -> Any:
        progress = [] if report is None else ["--progress-lines"]
        with tempfile.TemporaryDirectory(prefix="tocsin-rules-") as folder:
            await asyncio.to_thread(_write, Path(folder), files)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", _PROGRAM, command, "--json", *progress, *words),
                cwd=folder,
                env=environment(self.settings, command),
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
            )
            try:
                _limit(process, within_s)
                async with asyncio.timeout(within_s):
                    output, _ = await asyncio.gather(_read(process.stdout), _follow(process.stderr, report))
                    await process.wait()
            except TimeoutError:
                raise _too_long(command, within_s) from None
            finally:
                await _kill(process)
        return _answer(command, process.returncode, output)


def environment(settings: Settings, command: str) -> dict[str, str]:
    """The settings of the API for its process, with the addresses only if the command needs a server."""
    changed = settings.model_dump(mode="json", exclude_defaults=True)
    variables = {f"{PREFIX}{name.upper()}": _text(value) for name, value in changed.items()}
    if command in _NEEDS_NO_SERVER:
        for name in _SERVER_SETTINGS:
            variables.pop(f"{PREFIX}{name.upper()}", None)
    elif settings.postgres_roles:
        variables[f"{PREFIX}POSTGRES"] = make_conninfo(settings.postgres, user="tocsin_api")
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    return {**kept, **variables, "NO_COLOR": "1", "PYTHONUTF8": "1", f"{PREFIX}LOG_LEVEL": "error"}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _write(folder: Path, files: Sequence[RuleFile]) -> None:
    for file in files:
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")


def _limit(process: Process, within_s: float) -> None:
    with suppress(ProcessLookupError):  # it has ended already
        resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        seconds = int(within_s) + 1
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds))


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    assert stream is not None
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(65_536):
        size += len(part)
        if size > _MAX_OUTPUT:
            raise ProblemRaised(
                "too-large", "the result is too large", remedy="send fewer files, or a shorter time"
            )
        parts.append(part)
    return b"".join(parts)


async def _follow(stream: asyncio.StreamReader | None, report: ReportPercent | None) -> None:
    """Read the lines of progress, and drop what else the process writes."""
    assert stream is not None
    rest = b""
    while part := await stream.read(65_536):
        *lines, rest = (rest + part).split(b"\n")
        rest = rest[-_LONGEST_LINE:]
        percents = [int(match[1]) for line in lines if (match := _PROGRESS.fullmatch(line))]
        if percents and report is not None:
            report(percents[-1])


async def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    await process.wait()


def _too_long(command: str, within_s: float) -> ProblemRaised:
    return ProblemRaised(
        "too-slow",
        f"{command!r} took longer than {within_s:g} s and was ended",
        remedy="send fewer documents",
    )


def _answer(command: str, exit_code: int | None, output: bytes) -> Any:
    try:
        answer = json.loads(output)
    except ValueError:
        raise ProblemRaised(
            "unavailable",
            f"{command!r} ended without an answer (exit code {exit_code})",
            remedy="it may have used too much memory or time; send fewer documents",
        ) from None
    if isinstance(answer, dict) and set(answer) == {"error"}:
        raise _problem(answer["error"], exit_code)
    return answer


def _problem(error: dict[str, Any], exit_code: int | None) -> ProblemRaised:
    places = [
        ProblemError(
            detail=problem["message"], file=problem["file"], line=problem["line"], column=problem["column"]
        )
        for problem in error.get("problems", ())
    ]
    kind = "unavailable" if exit_code == _UNREACHABLE else "invalid" if places else "refused"
    return ProblemRaised(kind, error["message"], remedy=error.get("remedy", ""), errors=places)
