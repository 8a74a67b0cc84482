"""A service: one coroutine that runs until it is stopped, and is started again when it crashes.

Guarantees: `stop` returns only when the coroutine has ended; a crash is logged once and followed by a
restart after a back-off that doubles from 0.1 s to 5 s and begins anew after a healthy half minute;
cancellation is never mistaken for a crash. `Unreachable` is an ordinary state of the world, so it is
logged as a wait, without a traceback.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import psycopg
import structlog
from nats.errors import Error as NatsError

from tocsin.core.errors import TocsinError

_log = structlog.get_logger()
_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 5.0
_HEALTHY_S = 30.0
_ASK_AGAIN_S = 1.5
_ASK_TASK_AGAIN_S = 0.1
# What a restart of Postgres or NATS looks like from inside a service.
_ORDINARY = (TocsinError, psycopg.OperationalError, NatsError, OSError, TimeoutError)


class Service:
    def __init__(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self.restarts = 0
        self.last_error = ""
        self._run = run
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        if self.running:
            raise RuntimeError(f"the service {self.name!r} runs already")
        self._stopping = False
        self._task = asyncio.create_task(self._supervise(), name=self.name)

    async def stop(self) -> None:
        if self._task is None:
            return
        self._stopping = True
        # Not `await self._task`: that would swallow the cancellation of whoever stops us. Asked more than once, because
        # libraries wait with Python 3.11's `wait_for`, which loses a cancellation that meets its result.
        pending = {self._task}
        while pending:
            self._task.cancel()
            _, pending = await asyncio.wait(pending, timeout=_ASK_AGAIN_S)
        self._task = None

    async def _supervise(self) -> None:
        delay_s = _FIRST_DELAY_S
        while True:
            began = time.monotonic()
            try:
                await self._run()
                return
            except asyncio.CancelledError as error:
                if self._is_cancelled():
                    raise
                _log.exception(
                    "service crashed: it was cancelled from inside", service=self.name, error=error
                )
            except _ORDINARY as error:
                self.last_error = _sentence(error)
                _log.warning("service waits", service=self.name, error=error)
            except Exception as error:
                self.last_error = _sentence(error)
                _log.exception("service crashed", service=self.name, error=error)
            if self._is_cancelled():
                # Its cleanup failed on the way out: that must not look like a crash to start again from.
                return
            self.restarts += 1
            if time.monotonic() - began > _HEALTHY_S:
                delay_s = _FIRST_DELAY_S
            await _pause(delay_s)
            delay_s = min(delay_s * 2, _LONGEST_DELAY_S)

    def _is_cancelled(self) -> bool:
        task = asyncio.current_task()
        return self._stopping or (task is not None and task.cancelling() > 0)


def _sentence(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text if isinstance(error, TocsinError) else f"{type(error).__name__}: {text}"


async def _pause(delay_s: float) -> None:
    """Apart, so that a test can look at the back-off without living through it."""
    await asyncio.sleep(delay_s)


@asynccontextmanager
async def running(*services: Service) -> AsyncIterator[None]:
    """All of them for the length of the block; stopped together, also when the block fails."""
    try:
        for service in services:
            service.start()
        yield
    finally:
        await asyncio.gather(*(service.stop() for service in services))


async def end_tasks(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel and wait, even if we are cancelled meanwhile: nobody else would wait for them. Libraries that wait with
    Python 3.11's `wait_for` may swallow a cancellation: ask until they have ended."""
    all_tasks = list(tasks)
    pending = {task for task in all_tasks if not task.done()}
    cancelled: asyncio.CancelledError | None = None
    while pending:
        for task in pending:
            task.cancel()
        try:
            _, pending = await asyncio.wait(pending, timeout=_ASK_TASK_AGAIN_S)
        except asyncio.CancelledError as error:
            cancelled = error
            pending = {task for task in pending if not task.done()}
    for task in all_tasks:
        if not task.cancelled():
            task.exception()  # looked at, or asyncio reports it as never retrieved
    if cancelled is not None:
        raise cancelled
