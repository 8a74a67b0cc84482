"""A circuit breaker for errors that look like the fault of a message or a row.

Guarantee: a failure is blamed on its source at once, until `LIMIT` different sources have failed
with the same error and none has succeeded since. From then on the cause lies elsewhere (a
constraint, a trigger, a defect of this version), and nothing is blamed until a source succeeds.

Why sources and not messages: a source is the owner of a message, or a timer. All invalid messages
of one owner are that owner's fault, however many they are, and are rejected without delay.

Why not by time alone: docs/decisions/0024.

Pure: the caller waits, tries again and reports. The state is lost with the process, so at most
`LIMIT - 1` sources are blamed for a common cause after a restart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import psycopg

LIMIT = 3


class Breaker:
    def __init__(self, window_s: float = math.inf) -> None:
        """Failures with more than `window_s` between them are not related."""
        self._window_s = window_s
        self._failures: dict[str, _Failures] = {}

    def failed(self, error: BaseException, source: str, now_s: float) -> bool:
        """Note a failure. True: blame the source; false: the cause lies elsewhere."""
        code = code_of(error)
        failures = self._failures.get(code)
        if failures is None or now_s - failures.last_s > self._window_s:
            failures = self._failures[code] = _Failures()
        failures.last_s = now_s
        if len(failures.sources) < LIMIT:
            failures.sources.add(source)
        return len(failures.sources) < LIMIT

    def succeeded(self) -> None:
        self._failures.clear()


@dataclass
class _Failures:
    """The failures with one error."""

    sources: set[str] = field(default_factory=set)
    last_s: float = -math.inf


def code_of(error: BaseException) -> str:
    """The SQLSTATE, or the name of an error that is not from the server."""
    sqlstate = error.sqlstate if isinstance(error, psycopg.Error) else None
    return sqlstate or type(error).__name__
