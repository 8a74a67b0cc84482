"""A command that is run, with a check-in when it starts and when it ends.

Guarantee: the command runs whether Tocsin can be reached or not, with the output, the environment and
the standard input of the caller, and its exit code is returned. A check-in that cannot be
delivered is repeated, the start for as long as the command runs, the end for `--wait`; then a warning is
printed. Signals are forwarded to the command.

The last 4,096 characters of the output are part of the last check-in, as they are: nothing is removed
from them. A command that prints secrets needs `--no-log`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import uuid
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

import typer

from tocsin.core.errors import InvalidInput, TocsinError

if TYPE_CHECKING:
    from tocsin.client.producer import Producer

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_KEPT_BYTES = 4 * 4096
_CONNECT_S = 5.0
_RETRY_S = 1.0
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


class ReportedJob:
    def __init__(self, name: str, command: list[str], owner: str, wait_s: float, keeps_log: bool) -> None:
        self._name = name
        self._command = command
        self._owner = owner
        self._wait_s = wait_s
        self._keeps_log = keeps_log
        self._run = uuid.uuid4().hex[:16]
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._warned = False

    async def run(self) -> int:
        began_s = time.monotonic()
        starting = asyncio.create_task(self._deliver("start", None))
        try:
            code = await self._run_command()
        except (OSError, ValueError) as error:
            code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
            self._keep(f"{self._command[0]}: {error}".encode())
            typer.echo(f"tocsin: {self._command[0]} cannot be run: {error}", err=True)
        lasted_s = time.monotonic() - began_s
        # The start is worth nothing without the end, which comes at once.
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await starting
        await self._deliver("end", code, lasted_s)
        return code

    async def _run_command(self) -> int:
        pipe = asyncio.subprocess.PIPE if self._keeps_log else None
        process = await asyncio.create_subprocess_exec(*self._command, stdout=pipe, stderr=pipe)
        loop = asyncio.get_running_loop()
        for number in _FORWARDED:
            loop.add_signal_handler(number, _forward, process, number)
        try:
            outputs = ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
            await asyncio.gather(*(self._copy(source, target) for source, target in outputs if source))
            code = await process.wait()
        finally:
            for number in _FORWARDED:
                loop.remove_signal_handler(number)
        return code if code >= 0 else 128 - code

    async def _copy(self, source: asyncio.StreamReader, target: TextIO) -> None:
        """Pass the output on as it comes, and keep its end."""
        while chunk := await source.read(65_536):
            self._keep(chunk)
            with suppress(OSError):  # The reader of our output may be gone; the command goes on.
                target.buffer.write(chunk)
                target.buffer.flush()

    def _keep(self, chunk: bytes) -> None:
        self._tail.append(chunk[-_KEPT_BYTES:])
        self._tail_bytes += len(self._tail[-1])
        while self._tail_bytes - len(self._tail[0]) >= _KEPT_BYTES:
            self._tail_bytes -= len(self._tail.popleft())

    async def _deliver(self, what: str, code: int | None, lasted_s: float | None = None) -> None:
        """Repeat a check-in until it is stored: the end for `wait`, the start until it is cancelled."""
        give_up_s = time.monotonic() + self._wait_s
        log = b"".join(self._tail).decode(errors="replace") if what == "end" and self._keeps_log else ""
        while True:
            try:
                async with asyncio.timeout(_CONNECT_S), _producer() as producer:
                    await self._check_in(producer, what, code, lasted_s, log)
                return
            except (TocsinError, OSError, TimeoutError) as error:
                self._warn(what, error)
                if isinstance(error, InvalidInput):
                    return
            if what == "end" and time.monotonic() + _RETRY_S > give_up_s:
                typer.echo(f"tocsin: the end of {self._name} was not reported", err=True)
                return
            await asyncio.sleep(_RETRY_S)

    async def _check_in(
        self, producer: Producer, what: str, code: int | None, lasted_s: float | None, log: str
    ) -> None:
        more: dict[str, Any] = {"owner": self._owner, "run": self._run, "key": f"{self._run}-{what}"}
        if what == "start":
            await producer.check_in(self._name, "start", **more)
        else:
            await producer.check_in(
                self._name, "success", exit_code=code, duration_s=lasted_s, log=log, **more
            )

    def _warn(self, what: str, error: BaseException) -> None:
        if not self._warned:
            self._warned = True
            reason = str(error) or type(error).__name__
            typer.echo(f"tocsin: the {what} of {self._name} cannot be reported yet: {reason}", err=True)


def _producer() -> Producer:
    from tocsin.cli.session import command_settings
    from tocsin.client.producer import Producer

    return Producer(command_settings(), timeout_s=_CONNECT_S)


def _forward(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, number)
