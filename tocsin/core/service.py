"""A service: one coroutine that runs until it is stopped, and is restarted when it crashes.

Guarantees: `stop` returns only when the coroutine has ended. A crash is logged once and followed by
a restart after a backoff that doubles from 0.1 s to 5 s and is reset after half a minute without a
crash. Cancellation is never mistaken for a crash. An outage of a server is ordinary, so it is
logged as a wait, without a traceback. `problem` returns what is wrong with the service now.

Why loops report that they run (`beat`): a task that exists may wait forever for an answer.
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
# When a cancelled task is cancelled again. Longer than a cleanup takes: a second cancellation would
# end that too.
_CANCEL_AGAIN_S = 2.0
# No loop works for so long without a beat: transactions are cut to parts of a lease.
_LONGEST_BEAT_S = 15.0
# Errors that a restart of Postgres or NATS causes inside a service, or a process that was frozen in
# a transaction.
_OUTAGES = (
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
        """Of the service, and of its parts: the services that it started itself."""
        self.last_failure: Exception | None = None
        self._run = run
        self._parent: Service | None = None
        self._beats: dict[str, tuple[float, str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def last_error(self) -> str:
        return "" if self.last_failure is None else _sentence(self.last_failure)

    @property
    def is_stuck(self) -> bool:
        """Whether a loop hangs, or the service ended by itself: only a new process helps."""
        overdue_s = max(
            (time.monotonic() - expected_s for expected_s, _ in self._beats.values()), default=0.0
        )
        return not self.running or overdue_s > _LONGEST_BEAT_S

    @property
    def problem(self) -> str | None:
        """The problem of the service; None while all of its loops run and reach their servers."""
        if not self.running:
            return "it is not running"
        if not self._beats:
            return self.last_error or "it is starting"
        for loop, (expected_s, waiting_for) in self._beats.items():
            overdue_s = time.monotonic() - expected_s
            if overdue_s > _LONGEST_BEAT_S:
                return f"{loop} has not run for {overdue_s:.0f} s"
            if waiting_for:
                return waiting_for
        return None

    def beat(self, loop: str, waiting_for: str, rest_s: float) -> None:
        self._beats[loop] = (time.monotonic() + rest_s, waiting_for)

    def start(self) -> None:
        if self.running:
            raise RuntimeError(f"the service {self.name!r} is running already")
        self._stopping = False
        self._parent = _current.get()
        self._task = asyncio.create_task(self._supervise(), name=self.name)

    async def stop(self) -> None:
        if self._task is None:
            return
        self._stopping = True
        # Not `await self._task`: that would swallow the cancellation of the caller. Cancelled again
        # after a while, because a library or a handler may have swallowed it (see
        # `tocsin.core.cancellation`).
        pending = {self._task}
        while pending:
            self._task.cancel()
            _, pending = await asyncio.wait(pending, timeout=_CANCEL_AGAIN_S)
        self._task = None

    def begin_stop(self) -> asyncio.Task[None] | None:
        """The task that the caller ends; None if the service does not run."""
        self._stopping = True
        return self._task

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
                _log.exception("service crashed: cancelled from inside", service=self.name, error=error)
            except _OUTAGES as error:
                self.last_failure = error
                _log.warning("service waits", service=self.name, error=error)
            except Exception as error:
                self.last_failure = error
                _log.exception("service crashed", service=self.name, error=error)
            if self._is_cancelled():
                # The cleanup failed during the stop: that must not look like a crash and restart
                # the service.
                return
            self._count_restart()
            self._beats.clear()
            if time.monotonic() - began > _HEALTHY_S:
                delay_s = _FIRST_DELAY_S
            await _pause(delay_s)
            delay_s = min(delay_s * 2, _LONGEST_DELAY_S)

    def _count_restart(self) -> None:
        self.restarts += 1
        if self._parent is not None:
            self._parent.last_failure = self.last_failure
            self._parent._count_restart()

    def _is_cancelled(self) -> bool:
        task = asyncio.current_task()
        return self._stopping or (task is not None and task.cancelling() > 0)


_current: ContextVar[Service | None] = ContextVar("service", default=None)


def beat(loop: str, waiting_for: str = "", rest_s: float = 0.0) -> None:
    """Report that a loop of the current service runs. Outside of a service, do nothing.

    `waiting_for` is the error that the loop waits out. `rest_s` is how long it may rest now if
    there is nothing to do.
    """
    service = _current.get()
    if service is not None:
        service.beat(loop, waiting_for, rest_s)


def _sentence(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text if isinstance(error, TocsinError) else f"{type(error).__name__}: {text}"


async def _pause(delay_s: float) -> None:
    """Sleep. A function of its own, so that a test can replace it."""
    await asyncio.sleep(delay_s)


@asynccontextmanager
async def running(*services: Service) -> AsyncIterator[None]:
    """Run the services for the length of the block, and stop them together."""
    try:
        for service in services:
            service.start()
        yield
    finally:
        await stop_services(services)


async def stop_services(services: Iterable[Service]) -> None:
    """Stop services together; returns when all have ended, also if the caller is cancelled."""
    await end_tasks([task for service in services if (task := service.begin_stop()) is not None])


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their end, also if the caller is cancelled meanwhile.

    A task that has not ended after a while is cancelled again, because a library or a handler may
    have swallowed the first cancellation (see `tocsin.core.cancellation`).
    """
    all_tasks = list(tasks)
    pending = {task for task in all_tasks if not task.done()}
    cancelled: asyncio.CancelledError | None = None
    cancel_at_s = 0.0
    while pending:
        if time.monotonic() >= cancel_at_s:
            cancel_at_s = time.monotonic() + _CANCEL_AGAIN_S
            for task in pending:
                task.cancel()
        try:
            _, pending = await asyncio.wait(pending, timeout=max(0.0, cancel_at_s - time.monotonic()))
        except asyncio.CancelledError as error:
            cancelled = error
            pending = {task for task in pending if not task.done()}
    for task in all_tasks:
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio logs it
    if cancelled is not None:
        raise cancelled
