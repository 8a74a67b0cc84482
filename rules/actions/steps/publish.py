"""`publish`: a message on a NATS subject. `dispatch`: the same, and whoever takes it reports what came of it.

Guarantee: a message is with the server before its step is completed. Each attempt of a `publish` has the same
`Nats-Msg-Id`, so that a stream keeps one of them; each attempt of a `dispatch` has its own, because the consumer must
see it again. The idempotency key is one and the same in both.
"""

from __future__ import annotations

import json
from typing import Any

from nats.aio.client import Client

from rules.actions.steps.task import LONGEST_KEPT, Task
from rules.language.templates import fill, fill_subject
from rules.runbook import Completed, Failed, Outcome, Paused, TimedOut
from schemas.documents.runbook import PublishStep
from schemas.documents.runbook.subject import check_subject
from schemas.values.duration import format_duration
from schemas.wire.subjects import report_subject
from tocsin.core.errors import InvalidInput, Unreachable

FLUSH_S = 5
_HEADER_BYTES = 2_048
# NATS closes the connection of a client that sends a longer line than 4,096 bytes.
_LONGEST_SUBJECT = 2_000


async def perform_publish(task: Task) -> Outcome:
    step = task.node.step.publish
    assert step is not None
    subject = await _send(task, step, {"Nats-Msg-Id": task.key})
    return Completed({"subject": subject})


async def perform_dispatch(task: Task) -> Outcome:
    step = task.node.step.dispatch
    assert step is not None
    if "report" in task.entry:
        return outcome_of_report(task.entry["report"])
    if task.entry.get("lapsed"):
        return TimedOut(f"nobody reported within {format_duration(step.within)}")
    headers = {
        "Nats-Msg-Id": f"{task.key}/{task.attempt}",
        "Tocsin-Action-Id": str(task.action.id),
        "Tocsin-Step": str(task.node.number),
        "Tocsin-Attempt": str(task.attempt),
        "Tocsin-Report": report_subject(task.world.settings.subjects, task.action.id, task.node.number),
    }
    subject = await _send(task, step, headers)
    return Paused(task.action.at + step.within, answer={"subject": subject})


def outcome_of_report(report: dict[str, Any]) -> Outcome:
    """What `tocsin.report` was given."""
    result = report.get("result") or {}
    if report["state"] == "completed":
        return Completed(result)
    return Failed(
        str(report.get("error") or "the consumer reported that it failed")[:LONGEST_KEPT], answer=result
    )


async def _send(task: Task, step: PublishStep, headers: dict[str, str]) -> str:
    bus = task.world.bus
    subject = fill_subject(step.subject, task.data)
    body = json.dumps(fill(step.payload, task.data), ensure_ascii=False).encode()
    _refuse_unsendable(subject, body, task.world.settings.namespace, bus.max_payload)
    connection = bus.stats["reconnects"]
    await bus.publish(subject, body, headers={**task.headers, **headers})
    await flush(bus, connection)
    return subject


async def flush(bus: Client, connection: int) -> None:
    """Until the server has it; `connection` is the number of reconnections when it was sent."""
    await bus.flush(timeout=FLUSH_S)
    # A flush of nats-py that finds no connection returns as if all were well: the message is only buffered.
    if not bus.is_connected or bus.stats["reconnects"] != connection:
        raise Unreachable("the connection to nats was lost while publishing: the message may be lost with it")


def _refuse_unsendable(subject: str, body: bytes, namespace: str, max_payload: int) -> None:
    """What was filled in is only known now, and NATS would answer it by closing the connection."""
    if len(subject) > _LONGEST_SUBJECT:
        raise InvalidInput(
            f"the subject {subject[:80]!r}... has {len(subject)} characters, at most {_LONGEST_SUBJECT} "
            "are accepted",
            remedy="use a shorter value in it",
        )
    check_subject(subject)
    if subject.split(".")[0] == namespace:
        raise InvalidInput(
            f"the subject {subject!r} belongs to tocsin itself", remedy="start it with another word"
        )
    if len(body) + _HEADER_BYTES > max_payload:
        raise InvalidInput(
            f"the message has {len(body)} bytes, nats accepts {max_payload}", remedy="send less of the event"
        )
