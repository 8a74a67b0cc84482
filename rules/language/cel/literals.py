"""Checks literals that the engine reads only during evaluation.

Guarantee: a literal that is a regular expression, timestamp, duration or timezone is evaluated when
the rule is loaded. Without this check, a mistake in one of them would make every evaluation fail.

Why the engine makes the check: only it knows its own dialects (RE2, Go durations, its tz reader).
"""

from functools import lru_cache

from cel_expr_python import cel

from timers.recurrence import zones
from tocsin.core.errors import InvalidInput

_TRIALS = {
    "regular expression": '"".matches(text) in [true, false]',
    "timestamp": "timestamp(text) == timestamp(text)",
    "duration": "duration(text) == duration(text)",
    "timezone": 'timestamp("2026-01-01T00:00:00Z").getHours(text) >= 0',
}
_HINTS = {
    "timestamp": 'write it as "2026-01-01T00:00:00Z"',
    "duration": "write hours or less, such as 90s, 10m or 36h",
}


@lru_cache(maxsize=1)
def _trials() -> dict[str, cel.Expression]:
    assert zones.tz_version()
    env = cel.NewEnv(variables={"text": cel.Type.STRING})
    return {what: env.compile(expression) for what, expression in _TRIALS.items()}


def literal_problem(what: str, text: str) -> str | None:
    """The problem of a literal of the kind `what`; None if the engine accepts it."""
    if "\0" in text:
        return f"{what} {text!r} holds NUL, which no text of an event does"
    result = _trials()[what].eval(data={"text": text}).value()
    if isinstance(result, bool):
        return None
    if what == "timezone":
        return _timezone_problem(text)
    if what == "regular expression":
        reason = str(result).split("regular expression: ")[-1]
        return f"invalid regular expression {text!r}: {reason}"
    return f"invalid {what} {text!r}, {_HINTS[what]}"


def _timezone_problem(text: str) -> str:
    try:
        zones.zone(text)
    except InvalidInput as error:
        return str(error)
    return f"unknown timezone {text!r}: use an IANA name such as 'Europe/London'"
