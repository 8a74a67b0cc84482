"""The known name that a misspelt one stands for, at a bounded cost.

Guarantee: a comparison looks at names of at most 40 characters and at no more than 500 candidates.
Inside of `limited_hints` only the first 20 questions are answered: a file with many wrong references
would otherwise take minutes to check (200 references to 200 long names: 23 s).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice

_MAX_LENGTH = 40
_MAX_CANDIDATES = 500
_MAX_HINTS = 20

_left: ContextVar[list[int] | None] = ContextVar("hints left", default=None)


@contextmanager
def limited_hints() -> Iterator[None]:
    token = _left.set([_MAX_HINTS])
    try:
        yield
    finally:
        _left.reset(token)


def near_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    left = _left.get()
    if left is not None:
        if left[0] <= 0:
            return None
        left[0] -= 1
    if len(name) > _MAX_LENGTH:
        return None
    candidates = islice((one for one in known if len(one) <= _MAX_LENGTH), _MAX_CANDIDATES)
    return next(iter(difflib.get_close_matches(name, candidates, n=1, cutoff=cutoff)), None)
