"""The keys of a rule test: what may be given, what may be expected, and which keys belong together."""

from typing import Literal

INPUTS = (
    *("series", "event", "acknowledge", "snooze", "unsnooze", "resolve", "silence", "expire"),
    *("fail", "report", "never_reported", "probe", "outage", "apply", "check_in"),
)
EXPECTATIONS = (
    *("opened", "changed", "resolved", "sent", "event", "stale"),
    *("fresh", "rejected", "health", "run", "calculated"),
)
Kind = Literal[
    "opened",
    "changed",
    "resolved",
    "sent",
    "event",
    "stale",
    "fresh",
    "rejected",
    "health",
    "run",
    "calculated",
]
KEYS_OF_INPUTS = {
    "values": ("series",),
    "every": ("series",),
    "labels": ("series",),
    "batch": ("series",),
    "ts": ("series", "event"),
    "payload": ("event",),
    "status": ("check_in",),
    "exit_code": ("check_in",),
    "run_id": ("check_in",),
    "log": ("check_in",),
    "id": ("event",),
    "severity": ("event",),
    "correlation_id": ("event",),
    "reply_to": ("event",),
    "step": ("fail", "report", "probe"),
    "times": ("fail",),
    "result": ("report",),
    "error": ("report", "fail"),
    "well": ("probe",),
    "latency_ms": ("probe",),
}
