"""Perform: steps that are due are done, and their outcome is committed before the message is acknowledged.

Guarantee (I7): an outcome is unique per (action, step, attempt): a worker that comes second changes
nothing. What a step does in the world is done at least once, always with the same idempotency key. On
failure of the world (NATS away) nothing is committed and the step comes back; a step that can never succeed
(an unknown payload key, a message that NATS would not take, a subject of ours) ends as `failed` with its
error, or it would come back for ever.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from uuid import UUID

import structlog
from nats.aio.client import Client
from nats.errors import Error as NatsError
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb
from pydantic import ValidationError

from rules.consumers import open_consumer
from rules.delivery.templates import fill, fill_subject, fill_text
from schemas.documents import ActionDocument
from schemas.runbook.subject import check_subject
from schemas.step import ActionStep
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection, connect, retrying, statement
from tocsin.core.errors import InvalidInput, Unreachable
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_FLUSH_S = 5
_HEADER_BYTES = 512
# Of the event, as rules/read_action returns them behind those of the action.
_EVENT_COLUMNS = (
    *("seq", "id", "ts", "recorded_at", "origin", "type", "schedule", "rule", "action", "owner"),
    *("severity", "correlation_id", "payload"),
)
# NATS closes the connection of a client that sends a longer line than 4,096 bytes.
_LONGEST_SUBJECT = 2_000
# What is kept of a text in the log; the rest is in the world already.
_LONGEST_RESULT = 4_000


class Performer:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def run(self) -> None:
        connection = await connect(self._settings, "worker perform")
        try:
            bus = await connect_bus(self._settings, "worker perform")
            try:
                puller = await open_consumer(
                    bus,
                    self._settings,
                    "actions",
                    f"{self._settings.subjects}.action.>",
                    self._settings.worker_batch,
                )
                while True:
                    for message in await puller.next_batch():
                        await self.perform(connection, bus, message.data)
                        await message.ack()
            finally:
                with suppress(NatsError, OSError):  # the server may be gone
                    await bus.close()
        finally:
            await connection.close()

    async def perform(self, connection: Connection, bus: Client, body: bytes) -> bool:
        """Do the step if it is due and still ours to do; true if this call settled it."""
        try:
            step = ActionStep.model_validate_json(body)
        except ValidationError as error:
            _log.error("unreadable message in the stream", error=error)
            return False
        if step.state != "due":
            return False
        row = await (
            await connection.execute(statement("rules/read_action"), {"id": step.actionid})
        ).fetchone()
        if row is None or row[2] != "running":
            return False
        if row[3].get(str(step.step), {}).get("attempt") != step.attempt:
            return False
        try:
            result = await self._do(bus, row, f"{step.actionid}/{step.step}")
            outcome: dict[str, Any] = {"state": "completed", "result": Jsonb(result), "error": None}
        except (InvalidInput, ValidationError) as error:
            text = str(error)[:_LONGEST_RESULT]
            outcome = {"state": "failed", "result": Jsonb({"error": text}), "error": text}
            _log.error("action failed", action=step.action, error=text)
        return await retrying(lambda: _finish(connection, step.actionid, step, outcome))

    async def _do(self, bus: Client, row: TupleRow, idempotency_key: str) -> dict[str, Any]:
        document = ActionDocument.model_validate(row[1])
        facts = _facts(row)
        if document.log is not None:
            message = fill_text(document.log.message, facts)
            _log.info("action log", action=document.name, message=message)
            return {"message": message[:_LONGEST_RESULT]}
        assert document.publish is not None
        subject = fill_subject(document.publish.subject, facts)
        body = json.dumps(fill(document.publish.payload, facts), ensure_ascii=False).encode()
        self._refuse_unsendable(subject, body, bus.max_payload)
        headers = {"Nats-Msg-Id": idempotency_key, "Tocsin-Idempotency-Key": idempotency_key}
        connection = bus.stats["reconnects"]
        await bus.publish(subject, body, headers=headers)
        await bus.flush(timeout=_FLUSH_S)
        # A flush of nats-py that finds no connection returns as if all were well: the message is only buffered.
        if not bus.is_connected or bus.stats["reconnects"] != connection:
            raise Unreachable(
                "the connection to nats was lost while publishing: the message may be lost with it"
            )
        return {"subject": subject}

    def _refuse_unsendable(self, subject: str, body: bytes, max_payload: int) -> None:
        """What was filled in is only known now, and NATS would answer it by closing the connection."""
        if len(subject) > _LONGEST_SUBJECT:
            raise InvalidInput(
                f"the subject {subject[:80]!r}... has {len(subject)} characters, at most {_LONGEST_SUBJECT} "
                "are accepted: use a shorter value in it"
            )
        check_subject(subject)
        if subject.split(".")[0] == self._settings.namespace:
            raise InvalidInput(
                f"the subject {subject!r} belongs to tocsin itself: start it with another word"
            )
        if len(body) + _HEADER_BYTES > max_payload:
            raise InvalidInput(
                f"the message has {len(body)} bytes, nats accepts {max_payload}: send less of the event"
            )


def _facts(row: TupleRow) -> dict[str, Any]:
    """The event that started the action, under the names that rules and templates use."""
    facts = dict(zip(_EVENT_COLUMNS, row[7:], strict=True))
    if facts["seq"] is None:
        raise InvalidInput("the event that started this action is no longer in the log")
    return {
        **facts,
        "id": str(facts["id"]),
        "correlation_id": str(facts["correlation_id"]),
        "severity": facts["severity"] or 0,
    }


async def _finish(connection: Connection, action_id: UUID, step: ActionStep, outcome: dict[str, Any]) -> bool:
    row = await (
        await connection.execute(
            statement("rules/finish_action"),
            {"id": action_id, "step": step.step, "attempt": step.attempt, **outcome},
        )
    ).fetchone()
    return bool(row and row[0])
