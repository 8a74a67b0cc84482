"""Steps `publish` and `dispatch`: publish a message on a NATS subject. `dispatch` also waits for a
report.

Guarantee: the step continues only after the server has received the message. All attempts of a
`publish` have the same `Nats-Msg-Id`, so that a stream stores the message once. Each attempt of a
`dispatch` has its own `Nats-Msg-Id`, because the consumer must receive every attempt. The
idempotency key is the same for all attempts of a step, in both kinds.
"""

from __future__ import annotations

import json
from typing import Any

from nats.aio.client import Client

from rules.actions.steps.context import StepContext
from rules.actions.steps.due_step import MAX_TEXT_LENGTH, DueStep
from rules.actions.steps.message_id import message_id
from rules.language.templates import budget, fill, fill_subject
from rules.runbook import Completed, Failed, Outcome, Paused, TimedOut
from schemas.documents.runbook import PublishStep
from schemas.documents.runbook.subject import check_subject
from schemas.values.duration import format_duration
from schemas.wire.subjects import report_subject
from tocsin.core.db import fetch_value
from tocsin.core.errors import InvalidInput, Unreachable

FLUSH_TIMEOUT_S = 5
# Reserved for headers: NATS counts them with the body.
_HEADER_BYTES = 2_048
# NATS closes the connection of a client that sends a longer line than 4,096 bytes.
_MAX_SUBJECT_LENGTH = 2_000


async def perform_publish(step: DueStep, context: StepContext) -> Outcome:
    publish = step.document.publish
    assert publish is not None
    subject = await _send(step, context, publish, {"Nats-Msg-Id": await message_id(step, context)})
    return Completed({"subject": subject})


async def perform_dispatch(step: DueStep, context: StepContext) -> Outcome:
    dispatch = step.document.dispatch
    assert dispatch is not None
    ended = outcome_of_entry(step)
    if ended is not None:
        return ended
    number = step.node.number
    async with context.open_session() as connection:
        token = await fetch_value(
            connection, "rules.actions/read_report_token", {"action_id": step.run.id, "step": number}
        )
    headers = {
        "Nats-Msg-Id": f"{await message_id(step, context)}/{step.attempt}",
        "Tocsin-Action-Id": str(step.run.id),
        "Tocsin-Step": str(number),
        "Tocsin-Attempt": str(step.attempt),
        "Tocsin-Report": report_subject(context.settings.subjects, step.run.id, number, token),
        "Tocsin-Report-Token": token,
    }
    subject = await _send(step, context, dispatch, headers)
    return Paused(step.run.read_at + dispatch.within, answer={"subject": subject})


def outcome_of_entry(step: DueStep) -> Outcome | None:
    """The outcome of a `dispatch` whose report arrived or whose time is over; None before that.

    Pure: no I/O."""
    dispatch = step.document.dispatch
    assert dispatch is not None
    if "report" in step.entry:
        return outcome_of_report(step.entry["report"])
    if step.entry.get("lapsed"):
        return TimedOut(f"no report arrived within {format_duration(dispatch.within)}")
    return None


def outcome_of_report(report: dict[str, Any]) -> Outcome:
    """The outcome of a step from the report that the SQL function `tocsin.report` stored."""
    result = report.get("result") or {}
    if report["state"] == "completed":
        return Completed(result)
    error = str(report.get("error") or "the consumer reported that it failed")
    return Failed(error[:MAX_TEXT_LENGTH], answer=result)


async def _send(step: DueStep, context: StepContext, publish: PublishStep, headers: dict[str, str]) -> str:
    bus = context.nats
    with budget():
        subject = fill_subject(publish.subject, step.data)
        body = json.dumps(fill(publish.payload, step.data), ensure_ascii=False).encode()
    check_sendable(subject, body, context.settings.namespace, bus.max_payload)
    reconnects = bus.stats["reconnects"]
    await bus.publish(subject, body, headers={**step.headers, **headers})
    await flush(bus, reconnects)
    return subject


async def flush(bus: Client, reconnects: int) -> None:
    """Wait until the server has the message. `reconnects` is the number of reconnections before it
    was sent."""
    await bus.flush(timeout=FLUSH_TIMEOUT_S)
    # A flush of nats-py without a connection returns as if it had succeeded: the message is only
    # buffered.
    if not bus.is_connected or bus.stats["reconnects"] != reconnects:
        raise Unreachable("the connection to nats was lost while publishing: the message may be lost with it")


def check_sendable(subject: str, body: bytes, namespace: str, max_payload: int) -> None:
    """Reject a subject or body that NATS does not accept. Templates can produce any text, and NATS
    would close the connection instead of rejecting the message."""
    if len(subject) > _MAX_SUBJECT_LENGTH:
        raise InvalidInput(
            f"the subject {subject[:80]!r}... has {len(subject)} characters, at most {_MAX_SUBJECT_LENGTH} "
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
