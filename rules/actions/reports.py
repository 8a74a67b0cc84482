"""Reads the reports of services about the steps that were dispatched to them from NATS, and stores
them in Postgres.

Guarantee: a report is acknowledged only after it is committed to Postgres, through the function
`tocsin.report`, which services can also call in their own transactions. An unacknowledged report is
delivered again. A report that is delivered twice takes effect once. A report that can never take
effect (unreadable, no such step, or without the token of the message) becomes a dead letter with the reason.
"""

from __future__ import annotations

import re
import time
from datetime import timedelta
from uuid import UUID

import psycopg
import structlog
from nats.aio.msg import Msg
from nats.js.api import StreamConfig
from nats.js.client import JetStreamContext
from psycopg.types.json import Jsonb
from pydantic import ValidationError

from rules.lanes.attempts import MOST_DEATHS, SUSPECT_DELIVERIES, attempt, reason_of
from rules.lanes.consumers import open_consumer
from rules.lanes.dead_letters import ensure_dead_letters, send_dead_letter
from rules.lanes.message_fault import is_message_fault
from schemas.error_text import error_text
from schemas.values.json_shape import check_json_shape
from schemas.wire.dead_letter import dead_letter
from schemas.wire.report import MAX_STEP, Report
from tocsin.core.breaker import Breaker
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection, fetch_one, open_service_session
from tocsin.core.errors import InvalidInput, TocsinError
from tocsin.core.service import beat
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import INVALID, is_row_fault, summary
from tocsin.core.streams import ensure, stream_config

_log = structlog.get_logger()
_CONSUMER = "reports"
_REDELIVERY_DELAY_S = 1
_STEP = re.compile("[0-9]{1,5}")


def report_stream_config(settings: Settings) -> StreamConfig:
    return stream_config(
        settings.report_stream,
        [f"{settings.subjects}.report.>"],
        settings.stream_replicas,
        description="reports of services about dispatched steps",
        max_age=timedelta(hours=settings.stream_max_age_h).total_seconds(),
    )


class ReportConsumer:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._breaker = Breaker()

    async def run(self) -> None:
        settings = self._settings
        async with (
            open_service_session(settings, "worker reports") as connection,
            open_bus(settings, "worker reports") as bus,
        ):
            js = bus.jetstream(timeout=5)
            await ensure(js, report_stream_config(settings))
            await ensure_dead_letters(js, settings)
            subject = f"{settings.subjects}.report.>"
            puller = await open_consumer(
                bus, settings, _CONSUMER, subject, settings.worker_batch, settings.report_stream
            )
            while True:
                beat("reports")
                for message in await puller.next_batch():
                    await self._take_or_set_aside(connection, js, message)
                    await message.ack()

    async def _take_or_set_aside(self, connection: Connection, js: JetStreamContext, message: Msg) -> None:
        """Take a report, unless processes have died over it (`rules.lanes.attempts`)."""
        if message.metadata.num_delivered < SUSPECT_DELIVERIES:
            await self._take(connection, js, message)
            return
        async with attempt(connection, _CONSUMER, message.metadata.sequence.stream) as deaths:
            if deaths >= MOST_DEATHS:
                await self._reject(js, message, reason_of(deaths))
            else:
                await self._take(connection, js, message)

    async def _take(self, connection: Connection, js: JetStreamContext, message: Msg) -> None:
        try:
            is_new = await take_report(connection, message.subject, message.data)
        except Exception as error:
            if not isinstance(error, InvalidInput) and not is_message_fault(error):
                raise
            await self._raise_common_cause(message, error.__cause__)
            reason = str(error) if isinstance(error, InvalidInput) else f"it cannot be read: {error!r}"
            await self._reject(js, message, reason)
            return
        if is_new:
            self._breaker.succeeded()
        else:
            _log.info("report about a completed step ignored", subject=message.subject)

    async def _reject(self, js: JetStreamContext, message: Msg, reason: str) -> None:
        _log.error("report rejected", subject=message.subject, reason=reason)
        letter = dead_letter(reason, message.subject, message.metadata.timestamp, message.data)
        identity = f"report/{message.metadata.sequence.stream}"
        await send_dead_letter(js, self._settings, "report", letter, identity)

    async def _raise_common_cause(self, message: Msg, cause: BaseException | None) -> None:
        """Return the report to the stream if those about different steps fail in the same way."""
        if not isinstance(cause, psycopg.Error) or cause.sqlstate == INVALID:
            return
        if not self._breaker.failed(cause, message.subject, time.monotonic()):
            await message.nak(delay=_REDELIVERY_DELAY_S)
            raise TocsinError(
                f"reports wait, because those about different steps fail in the same way ({summary(cause)})",
                remedy="remove the common cause; nothing is lost",
            ) from cause


def _step_of(subject: str) -> tuple[UUID, int, str]:
    """The run, the step and the token in a subject. `ValueError` if it names no step."""
    *_, action_id, step, token = subject.split(".")
    if not _STEP.fullmatch(step) or int(step) > MAX_STEP or str(UUID(action_id)) != action_id:
        raise ValueError("not the subject of a report")
    return UUID(action_id), int(step), token


async def take_report(connection: Connection, subject: str, body: bytes) -> bool:
    """Store a report.

    Returns False if the step was completed before. Raises `InvalidInput` if the report can never
    take effect.
    """
    try:
        action_id, step, token = _step_of(subject)
        report = Report.model_validate_json(body)
        check_json_shape(report.result, "result")
        check_json_shape(report.error, "error")
        values = {"action_id": action_id, "step": step, "token": token, **report.model_dump()}
    except ValidationError as error:
        raise InvalidInput(error_text(error)) from None
    except ValueError:
        raise InvalidInput(
            f"the subject {subject!r} names no step",
            remedy="publish on the subject in the header Tocsin-Report",
        ) from None
    try:
        row = await fetch_one(connection, "rules.actions/report", {**values, "result": Jsonb(report.result)})
    except psycopg.Error as error:
        if is_row_fault(error):
            raise InvalidInput(str(error.diag.message_primary or error)) from error
        raise
    return bool(row and row[0])
