"""A check-in of a job: a datapoint with the key `heartbeat.<name>`, and the event that records it.

Guarantee: every check-in that `read_check_in` accepts has a status, a short run id and bounded numbers.
The value of the datapoint is `start`, `success` or `fail`, or the exit code of the job. The labels
`run`, `exit_code` and `duration_s` complete it. The end of the job's output is a second datapoint of the
same message, `heartbeat.<name>.log`.

Why a datapoint: the data stream has watermarks and arrival gaps, so an outage of Tocsin or of NATS is
never taken for a missing check-in. The worker that evaluates it appends one event, `heartbeat-start`,
`heartbeat-success` or `heartbeat-fail`.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from schemas.values.names import MAX_OWNER_LENGTH
from schemas.wire.datapoint import MAX_TEXT_LENGTH
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewEvent

Status = Literal["start", "success", "fail"]
STATUSES: tuple[Status, ...] = ("start", "success", "fail")
HEARTBEAT_PREFIX = "heartbeat."
_LOG_SUFFIX = ".log"
MAX_LOG_LENGTH = MAX_TEXT_LENGTH
"""Characters of the output that a check-in keeps: the last ones."""
MAX_RUN_LENGTH = 64
_MAX_DURATION_S = 10 * 366 * 86_400
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_EVENTS = uuid.UUID("5c1f1f0e-8f64-5d0b-9d6c-0f6f2b8a7c11")


class CheckIn(NamedTuple):
    status: Status
    run: str = ""
    """Pairs the start and the end of a run; empty if the job sends none."""
    exit_code: int | None = None
    duration_s: float | None = None

    @property
    def labels(self) -> dict[str, str]:
        labels = {} if not self.run else {"run": self.run}
        if self.exit_code is not None:
            labels["exit_code"] = str(self.exit_code)
        if self.duration_s is not None:
            labels["duration_s"] = f"{self.duration_s:.3f}"
        return labels


def check_in_key(name: str) -> str:
    return f"{HEARTBEAT_PREFIX}{name}"


def log_key(name: str) -> str:
    return f"{HEARTBEAT_PREFIX}{name}{_LOG_SUFFIX}"


def heartbeat_name(key: str) -> str | None:
    """The name of the heartbeat whose check-ins have this key."""
    if not key.startswith(HEARTBEAT_PREFIX):
        return None
    name = key[len(HEARTBEAT_PREFIX) :]
    return name if _NAME.fullmatch(name) else None


def read_check_in(value: object, labels: Mapping[str, str]) -> CheckIn:
    """The check-in of a datapoint. `ValueError` for one that says nothing about a job."""
    run = labels.get("run", "")
    if len(run) > MAX_RUN_LENGTH:
        raise ValueError(f"the run id has {len(run)} characters: use at most {MAX_RUN_LENGTH}")
    duration_s = _duration_s(labels.get("duration_s"))
    if isinstance(value, str):
        if value not in STATUSES:
            raise ValueError(f"{value[:40]!r} is no check-in: send start, success, fail or an exit code")
        return CheckIn(value, run, _exit_code(labels.get("exit_code")), duration_s)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError(f"{value!r} is no check-in: send start, success, fail or an exit code")
    code = _exit_code(str(int(value)))
    return CheckIn("fail" if code else "success", run, code, duration_s)


def check_datapoint_of(key: str, value: object, labels: Mapping[str, str]) -> None:
    """`ValueError` for a datapoint under a key of heartbeats that is neither a check-in nor a log."""
    name = key[len(HEARTBEAT_PREFIX) :]
    if name.endswith(_LOG_SUFFIX) and _NAME.fullmatch(name.removesuffix(_LOG_SUFFIX)):
        if not isinstance(value, str):
            raise ValueError(f"the value of {key!r} is no text: send the end of the output")
        return
    if not _NAME.fullmatch(name):
        raise ValueError(f"{key!r} names no heartbeat: send heartbeat.<name> or heartbeat.<name>.log")
    read_check_in(value, labels)


def check_in_datapoints(name: str, check_in: CheckIn, log: str = "") -> list[dict[str, Any]]:
    """The datapoints of one message. `InvalidInput` for a check-in that a worker would reject."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:60]!r} is no name of a heartbeat", remedy="use letters, digits, '-' and '_'"
        )
    status: Any = {"key": check_in_key(name), "value": check_in.status, "labels": check_in.labels}
    try:
        read_check_in(check_in.status, check_in.labels)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    tail = log_tail(log)
    return [{"key": log_key(name), "value": tail}, status] if tail else [status]


def log_tail(text: str) -> str:
    """The end of an output, as far as a check-in keeps it."""
    return text.replace("\0", "").rstrip()[-MAX_LOG_LENGTH:]


def check_owner(owner: str) -> None:
    if not owner or len(owner) > MAX_OWNER_LENGTH or "\0" in owner:
        raise InvalidInput(f"{owner[:60]!r} is no owner", remedy=f"use 1 to {MAX_OWNER_LENGTH} characters")


def check_in_event(
    owner: str, name: str, check_in: CheckIn, at: datetime, seq: int, position: int, log: str = ""
) -> NewEvent:
    """The event that records a check-in. `seq` and `position` are those of its datapoint in the stream."""
    payload: dict[str, Any] = {"heartbeat": name, "status": check_in.status}
    if check_in.run:
        payload["run"] = check_in.run
    if check_in.exit_code is not None:
        payload["exit_code"] = check_in.exit_code
    if check_in.duration_s is not None:
        payload["duration_s"] = check_in.duration_s
    if log:
        payload["log"] = log
    return NewEvent(
        ts=at,
        origin="external",
        type=f"heartbeat-{check_in.status}",
        payload=payload,
        owner=owner,
        id=uuid.uuid5(_EVENTS, f"{owner}/{name}/{at.isoformat()}/{seq}/{position}"),
    )


def _exit_code(text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"-?[0-9]{1,10}", text):
        raise ValueError(f"the exit code {text[:40]!r} is no number")
    return int(text)


def _duration_s(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        duration_s = float(text)
    except ValueError:
        duration_s = math.nan
    if not 0 <= duration_s <= _MAX_DURATION_S:
        raise ValueError(f"the duration {text[:40]!r} is no number of seconds")
    return duration_s
