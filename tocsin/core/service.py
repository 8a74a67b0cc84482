"""A service: one coroutine that runs until it is stopped, and is started again when it crashes.

Guarantees: `stop` returns only when the coroutine has ended; a crash is logged once and followed by a
restart after a back-off that doubles from 0.1 s to 5 s and begins anew after a healthy half minute;
cancellation is never mistaken for a crash. `Unreachable` is an ordinary state of the world, so it is
logged as a wait, without a traceback. `problem` says what is wrong with it now.

Why loops say that they live (`beat`): a task that is still there may wait for ever for an answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import structlog
from nats.errors import Error as NatsError

from tocsin.core.errors import TocsinError
from tocsin.core.sql_errors import OUTAGE

_log = structlog.get_logger()
_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 5.0
_HEALTHY_S = 30.0
# When a task that was cancelled is cancelled again. Longer than a cleanup takes: a second cancellation ends that too.
_ASK_AGAIN_S = 2.0
# No loop of ours is away for so long with work of its own: transactions are cut to parts of a lease.
_SILENT_S = 15.0
# What a restart of Postgres or NATS looks like from inside a service, or to have been frozen inside a transaction.
_ORDINARY = (
    TocsinError,
    *OUTAGE,
    NatsError,
    OSError,
    TimeoutError,
)


class Service:
    def __init__(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self.restarts = 0
        self.last_error = ""
        self._run = run
        self._beats: dict[str, tuple[float, str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def problem(self) -> str | None:
        """None while all of its loops go round and have what they need."""
        if not self.running:
            return "it does not run"
        if not self._beats:
            return self.last_error or "it is starting"
        for loop, (expected_s, trouble) in self._beats.items():
            silent_s = time.monotonic() - expected_s
            if silent_s > _SILENT_S:
                return f"{loop} has been silent for {silent_s:.0f} s"
            if trouble:
                return trouble
        return None

    def beat(self, loop: str, trouble: str, rest_s: float) -> None:
        self._beats[loop] = (time.monotonic() + rest_s, trouble)

    def start(self) -> None:
        if self.running:
            raise RuntimeError(f"the service {self.name!r} runs already")
        self._stopping = False
        self._task = asyncio.create_task(self._supervise(), name=self.name)

    async def stop(self) -> None:
        if self._task is None:
            return
        self._stopping = True
        # Not `await self._task`: that would swallow the cancellation of the caller. Cancelled again after a while,
        # because a library or a handler may have swallowed it (see `tocsin.core.cancellation`).
        pending = {self._task}
        while pending:
            self._task.cancel()
            _, pending = await asyncio.wait(pending, timeout=_ASK_AGAIN_S)
        self._task = None

    async def _supervise(self) -> None:
        _current.set(self)
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
            self._beats.clear()
            if time.monotonic() - began > _HEALTHY_S:
                delay_s = _FIRST_DELAY_S
            await _pause(delay_s)
            delay_s = min(delay_s * 2, _LONGEST_DELAY_S)

    def _is_cancelled(self) -> bool:
        task = asyncio.current_task()
        return self._stopping or (task is not None and task.cancelling() > 0)


_current: ContextVar[Service | None] = ContextVar("service", default=None)


def beat(loop: str, trouble: str = "", rest_s: float = 0.0) -> None:
    """A loop of the service that we run in went round; outside of a service, nothing.

    `trouble` is what it waits for, `rest_s` how long it may rest now when there is nothing to do.
    """
    service = _current.get()
    if service is not None:
        service.beat(loop, trouble, rest_s)


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


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their end, also if the caller is cancelled meanwhile: nothing else waits for them.

    A task that has not ended after a while is cancelled again: a library or a handler may have swallowed the first
    cancellation (see `tocsin.core.cancellation`).
    """
    all_tasks = list(tasks)
    pending = {task for task in all_tasks if not task.done()}
    cancelled: asyncio.CancelledError | None = None
    ask_at_s = 0.0
    while pending:
        if time.monotonic() >= ask_at_s:
            ask_at_s = time.monotonic() + _ASK_AGAIN_S
            for task in pending:
                task.cancel()
        try:
            _, pending = await asyncio.wait(pending, timeout=max(0.0, ask_at_s - time.monotonic()))
        except asyncio.CancelledError as error:
            cancelled = error
            pending = {task for task in pending if not task.done()}
    for task in all_tasks:
        if not task.cancelled():
            task.exception()  # looked at, or asyncio reports it as never retrieved
    if cancelled is not None:
        raise cancelled
