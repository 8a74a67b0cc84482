"""The budget of a rendering: its work is counted, and stopped at a limit.

Guarantee: a rendering ends after 100,000 steps or one second of CPU, whichever comes first, and no
text in it grows beyond a million characters.

Why also the CPU time of the thread: a step over a large list costs more than one over a number. Why
not elapsed time: a worker that is paused must not fail a correct template.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tocsin.core.errors import InvalidInput

MAX_TEXT_LENGTH = 1_000_000
MAX_RANGE = 10_000
MAX_STEPS = 100_000
MAX_CPU_S = 1.0


class _Budget:
    def __init__(self) -> None:
        self.steps = MAX_STEPS
        self.until = time.thread_time() + MAX_CPU_S


_current: ContextVar[_Budget | None] = ContextVar("budget of the rendering", default=None)


@contextmanager
def budget() -> Iterator[None]:
    """The budget of a rendering. Inside of another one, its budget is used: a message with many texts
    has one budget."""
    if _current.get(None) is not None:
        yield
        return
    token = _current.set(_Budget())
    try:
        yield
    finally:
        _current.reset(token)


def spend(steps: int = 1) -> None:
    left = _current.get()
    if left is None:
        raise RuntimeError("nothing is rendered outside of a budget")
    left.steps -= steps
    if left.steps < 0 or time.thread_time() > left.until:
        raise InvalidInput("it does too much", remedy="loop over less")


def bounded_length(length: int) -> None:
    if length > MAX_TEXT_LENGTH:
        raise InvalidInput(f"it makes a text of more than {MAX_TEXT_LENGTH} characters", remedy="write less")


def bounded_range(*bounds: int) -> range:
    values = range(*bounds)
    if len(values) > MAX_RANGE:
        raise InvalidInput(f"range() of {len(values)} numbers is too long: at most {MAX_RANGE} are accepted")
    return values
