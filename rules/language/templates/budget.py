"""How much a template may do: the work of one rendering is counted, and stopped when it is too much.

Guarantee: a rendering ends after 100,000 steps or one second of CPU, whichever comes first, and no text in it
grows beyond a million characters.

Why CPU time of the thread beside a count: a step over a large list costs more than one over a number,
and a worker that is merely paused must not fail a template that is fine.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tocsin.core.errors import InvalidInput

MAX_TEXT = 1_000_000
MAX_RANGE = 10_000
MAX_STEPS = 100_000
MAX_CPU_S = 1.0


class _Budget:
    def __init__(self) -> None:
        self.steps = MAX_STEPS
        self.until = time.thread_time() + MAX_CPU_S


_current: ContextVar[_Budget] = ContextVar("budget of the rendering")


@contextmanager
def budget() -> Iterator[None]:
    token = _current.set(_Budget())
    try:
        yield
    finally:
        _current.reset(token)


def spend(steps: int = 1) -> None:
    one = _current.get()
    one.steps -= steps
    if one.steps < 0 or time.thread_time() > one.until:
        raise InvalidInput("it does too much", remedy="loop over less")


def bounded_length(length: int) -> None:
    if length > MAX_TEXT:
        raise InvalidInput(f"it makes a text of more than {MAX_TEXT} characters", remedy="write less")


def bounded_range(*bounds: int) -> range:
    values = range(*bounds)
    if len(values) > MAX_RANGE:
        raise InvalidInput(f"range() of {len(values)} numbers is too long: at most {MAX_RANGE} are accepted")
    return values
