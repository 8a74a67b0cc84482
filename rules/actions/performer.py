"""The performer: takes due steps from the record stream, performs them and commits their outcomes.

Guarantee I7 (docs/guarantees.md): an outcome is unique per (run, step, attempt); a worker that
commits second changes nothing. The external effect of a step happens at least once, always with the
same idempotency key. A message is acknowledged after its outcome is committed. While a step runs,
the performer extends its ack wait, so that a slow step is not delivered to a second worker. At most
`worker_concurrency` steps run at once, and a slow step does not delay the others: deliveries to one
target take at most half of the places (`rules.delivery.target_limits`), and a step whose target has
none left is delivered again when its turn comes (`rules.actions.waiting_turns`). Which of the due
steps begin first depends on their priority (`rules.actions.due_steps`).

On failure of Tocsin's own servers nothing is committed, the service starts again, and the step is
delivered again: at once if it was not begun, a second later if it failed, after the ack wait if the
process died. A missing right, column or partition is not an outcome either, nor an error that steps
of different rules have in common (`tocsin.core.breaker`): the step is delivered again after a
growing delay, and the others continue. Any other error is an outcome: the step is retried as its
document says, and ends as `failed` or `timed_out`.

A step that cannot even be handled (a defect, a value that cannot be read) ends its run as failed, or
becomes a dead letter if that fails too; the steps of others continue. The same happens to a step over
which processes have died (`rules.lanes.attempts`). Such steps are tried one at a time.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress

import psycopg
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from pydantic import ValidationError

from rules.actions.commit import commit_outcome, fail_run
from rules.actions.due_steps import DueSteps
from rules.actions.hold import held, is_holdable, read_suppressions
from rules.actions.run import ActionRun
from rules.actions.steps import perform
from rules.actions.steps.context import StepContext
from rules.actions.steps.due_step import MAX_TEXT_LENGTH, DueStep
from rules.actions.steps.publish import outcome_of_report
from rules.actions.store import read_facts, read_run
from rules.actions.waiting_turns import WaitingTurns
from rules.delivery.egress import Egress
from rules.delivery.target_limits import TargetBusy
from rules.lanes.attempts import MOST_DEATHS, SUSPECT_DELIVERIES, begin_attempt, end_attempt, reason_of
from rules.lanes.dead_letters import ensure_dead_letters, send_dead_letter
from rules.lanes.message_fault import is_message_fault
from rules.metrics import STEP, STEPS
from rules.runbook import Completed, Failed, Held, Outcome, Paused, Rested, TimedOut
from schemas.error_text import error_text
from schemas.values.duration import format_duration
from schemas.wire.dead_letter import dead_letter
from schemas.wire.step import ActionStep
from tocsin.core.bus import open_bus
from tocsin.core.db import pool
from tocsin.core.errors import InvalidInput, TocsinError, Unreachable
from tocsin.core.service import beat, end_tasks
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import is_row_fault, summary

_log = structlog.get_logger()
# Failures of Tocsin's own servers: not an outcome of the step.
_SERVER_ERRORS = (Unreachable, NatsError, psycopg.OperationalError, psycopg.InterfaceError)
_OUTCOMES = {
    Completed: "completed",
    Failed: "failed",
    TimedOut: "timed_out",
    Paused: "paused",
    Held: "held",
    Rested: "rested",
}
# A step needs a Postgres session only to read and to commit.
_MAX_SESSIONS = 8
_FLUSH_TIMEOUT_S = 1
# Delay before a step with an unknown outcome is delivered again. This is not a retry of the step: a
# server was away.
_REDELIVERY_DELAY_S = 1
_LONGEST_DELAY_S = 60
# Delay of a suspect while another one is tried and others wait already.
_SUSPECT_DELAY_S = 1
# How long a step that waits is reported. Longer than a worker takes to meet it again at first.
_REPORTED_S = 10.0
# Longest time without a heartbeat while `worker_concurrency` steps run.
_FULL_WAIT_S = 1
# Attempts of steps of all priorities: they have one stream.
_ATTEMPTS = "actions"


class StepWaits(TocsinError):
    """The outcome cannot be stored now, and the step is not to blame."""


class Performer:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._waiting_for, self._waited_s = "", -math.inf
        self._egress = Egress.from_settings(settings)
        self._messages: dict[asyncio.Task[None], Msg] = {}
        """The messages of the steps that run."""
        self._suspects = asyncio.Lock()
        self._suspects_count = 0
        self._most_suspects = max(2, settings.worker_concurrency // 4)
        """Suspects that are tried or wait for it. Each takes a place of the worker."""

    async def run(self) -> None:
        settings = self._settings
        sessions_count = min(_MAX_SESSIONS, settings.worker_concurrency)
        async with (
            open_bus(settings, "worker perform") as bus,
            pool(settings, "worker perform", sessions_count) as sessions,
        ):
            await ensure_dead_letters(bus.jetstream(timeout=5), settings)
            steps = await DueSteps.open(bus, settings)
            context = StepContext(settings, bus, sessions.connection, self._egress)
            await self._work(context, steps, WaitingTurns(context.target_limits))

    async def _work(self, context: StepContext, steps: DueSteps, turns: WaitingTurns) -> None:
        extending = asyncio.create_task(self._extend_ack_waits(), name="extend ack waits")
        try:
            while True:
                is_recent = time.monotonic() - self._waited_s < _REPORTED_S
                beat("perform", waiting_for=self._waiting_for if is_recent else "")
                self._raise_failure(extending)
                # Every message that is taken is begun at once: none waits here while its ack wait
                # runs out.
                free = self._settings.worker_concurrency - len(self._messages)
                if free == 0:
                    for message in steps.surplus():
                        await message.nak()
                    tasks = [extending, *self._messages]
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=_FULL_WAIT_S)
                    continue
                for message in await steps.take(free):
                    delay_s = turns.delay_s(message.metadata.sequence.stream, time.monotonic())
                    if delay_s is not None:
                        await message.nak(delay=delay_s)
                        continue
                    task = asyncio.create_task(self._handle(context, message, turns), name="step")
                    self._messages[task] = message
        finally:
            await self._return_messages(context.nats, steps, extending)

    async def _handle(self, context: StepContext, message: Msg, turns: WaitingTurns) -> None:
        seq = message.metadata.sequence.stream
        try:
            if message.metadata.num_delivered - turns.returns(seq) < SUSPECT_DELIVERIES:
                await perform_step(context, message.data)
            elif self._suspects_count >= self._most_suspects:
                await message.nak(delay=_SUSPECT_DELAY_S)
                return
            else:
                await self._perform_suspect(context, message)
        except TargetBusy as busy:
            await message.nak(delay=turns.wait(seq, busy.target, time.monotonic()))
        except Exception as error:
            if isinstance(error, StepWaits) or (
                isinstance(error, psycopg.Error) and not is_row_fault(error) and not _is_outage(error)
            ):
                await self._wait(message, summary(error))
                return
            if not is_message_fault(error):
                raise
            await self._set_aside_unless_common(context, message, error)
        else:
            context.breakers[_ATTEMPTS].succeeded()
            turns.forget(seq)
            await message.ack()

    async def _wait(self, message: Msg, reason: str) -> None:
        delay_s = _redelivery_delay_s(message, _LONGEST_DELAY_S)
        _log.warning("step waits", subject=message.subject, error=reason, delay_s=delay_s)
        self._waiting_for = f"a step waits ({reason})"
        self._waited_s = time.monotonic()
        await message.nak(delay=delay_s)

    async def _perform_suspect(self, context: StepContext, message: Msg) -> None:
        """Perform a step that was delivered before, unless processes have died over it.

        One at a time: the death of a process with several attempts would count for none of them.
        """
        seq = message.metadata.sequence.stream
        self._suspects_count += 1
        try:
            async with self._suspects:
                await self._attempt(context, message, seq)
        finally:
            self._suspects_count -= 1

    async def _attempt(self, context: StepContext, message: Msg, seq: int) -> None:
        async with context.open_session() as connection:
            deaths = await begin_attempt(connection, _ATTEMPTS, seq)
        try:
            if deaths >= MOST_DEATHS:
                await set_aside(context, message, reason_of(deaths))
            else:
                await perform_step(context, message.data)
        finally:
            with suppress(psycopg.Error, TocsinError):
                async with context.open_session() as connection:
                    await end_attempt(connection, _ATTEMPTS, seq)

    async def _set_aside_unless_common(self, context: StepContext, message: Msg, error: Exception) -> None:
        if not context.breakers[_ATTEMPTS].failed(error, message.subject, time.monotonic()):
            await self._wait(message, f"steps of different actions fail in the same way: {summary(error)}")
            return
        _log.exception("step cannot be handled", subject=message.subject, error=error)
        await set_aside(context, message, f"it cannot be handled: {summary(error)}")
        await message.ack()

    def _raise_failure(self, extending: asyncio.Task[None]) -> None:
        for task in [task for task in self._messages if task.done()]:
            task.result()
            del self._messages[task]
        if extending.done():
            extending.result()

    async def _extend_ack_waits(self) -> None:
        """Keep the server from delivering steps that run to another worker."""
        while True:
            await asyncio.sleep(self._settings.worker_ack_wait_s / 3)
            for task, message in list(self._messages.items()):
                if not task.done():
                    await message.in_progress()

    async def _return_messages(self, bus: Client, steps: DueSteps, extending: asyncio.Task[None]) -> None:
        """Let the server deliver steps without an outcome to other workers."""
        unfinished = [message for task, message in self._messages.items() if not task.done()]
        failed = [message for task, message in self._messages.items() if task.done() and task.exception()]
        await end_tasks([extending, *self._messages])
        self._messages.clear()
        with suppress(NatsError, OSError, TimeoutError):
            # Drain first: otherwise the open pull request would receive the returned messages.
            unfinished += await steps.drain()
            for message in unfinished:
                await message.nak()
            for message in failed:
                await message.nak(delay=_REDELIVERY_DELAY_S)
            await bus.flush(timeout=_FLUSH_TIMEOUT_S)


def _redelivery_delay_s(message: Msg, longest_s: float) -> float:
    doublings = min(message.metadata.num_delivered - 1, 10)
    return min(_REDELIVERY_DELAY_S * 2.0**doublings, longest_s)


def _is_outage(error: psycopg.Error) -> bool:
    return isinstance(error, _SERVER_ERRORS)


async def set_aside(context: StepContext, message: Msg, reason: str) -> None:
    """End the run of a step that cannot be handled; a dead letter if the run cannot be read."""
    reason = reason.replace("\0", "")[:MAX_TEXT_LENGTH]
    try:
        due = ActionStep.model_validate_json(message.data)
        async with context.open_session() as connection:
            while True:
                run = await read_run(connection, due.actionid)
                if run is None or not run.is_due(due.step, due.attempt):
                    return
                if await fail_run(connection, run, due.step, reason):
                    return
    except Exception as error:
        if not is_message_fault(error):
            raise
        letter = dead_letter(reason, message.subject, message.metadata.timestamp, message.data)
        identity = f"{context.settings.stream}/{message.metadata.sequence.stream}/step"
        await send_dead_letter(context.nats.jetstream(), context.settings, "step", letter, identity)


async def perform_step(context: StepContext, body: bytes) -> bool:
    """Perform the step of a message if it is still due. True if this call committed its outcome."""
    try:
        due = ActionStep.model_validate_json(body)
    except ValidationError as error:
        _log.error("unreadable message in the stream", error=error)
        return False
    if due.state != "due":
        return False
    async with context.open_session() as connection:
        run = await read_run(connection, due.actionid)
        if run is None or not run.is_due(due.step, due.attempt):
            return False
        try:
            node = run.node(due.step)
        except (ValidationError, InvalidInput) as error:
            reason = error_text(error) if isinstance(error, ValidationError) else str(error)
            return await fail_run(connection, run, due.step, reason[:MAX_TEXT_LENGTH])
        try:
            facts = await read_facts(connection, run, is_notification=node.kind == "notify")
        except InvalidInput as error:
            return await commit_outcome(connection, run, due.step, Failed(str(error), permanent=True))
        if node.kind != "notify" and is_holdable(facts):
            now = run.read_at
            suppressions = await read_suppressions(connection, context.suppressions, facts.alarms, now)
            hold = held(facts, suppressions, now)
            if hold is not None:
                return await commit_outcome(connection, run, due.step, hold)
    began_s = time.monotonic()
    outcome = await _outcome(DueStep(run, node, facts), context)
    STEP.observe(time.monotonic() - began_s, node.kind)
    try:
        is_committed = await _commit(context, run, due, outcome)
    except psycopg.Error as error:
        if not is_row_fault(error):
            raise
        failed = _failed(context, run, node.kind, error)
        return await _commit(context, run, due, failed)
    context.breakers[node.kind].succeeded()
    return is_committed


def _failed(context: StepContext, run: ActionRun, kind: str, error: psycopg.Error) -> Failed:
    """The outcome of a step whose own outcome Postgres rejects.

    `StepWaits` if steps of different rules fail in this way.
    """
    reason = summary(error).replace("\0", "")
    if not context.breakers[kind].failed(error, run.rule, time.monotonic()):
        raise StepWaits(
            f"{kind} steps of different rules fail in the same way ({reason})",
            remedy="remove the common cause; nothing is lost",
        ) from error
    _log.error("outcome rejected", action=run.name, id=run.id, error=error)
    return Failed(f"its outcome cannot be stored ({reason})"[:MAX_TEXT_LENGTH], permanent=True)


async def _commit(context: StepContext, run: ActionRun, due: ActionStep, outcome: Outcome) -> bool:
    """Commit the outcome. Try again while other steps change the run, until this step is no longer
    due."""
    while True:
        async with context.open_session() as connection:
            if await commit_outcome(connection, run, due.step, outcome):
                STEPS.add(1, run.node(due.step).kind, _OUTCOMES[type(outcome)])
                return True
            changed = await read_run(connection, due.actionid)
        if changed is None or not changed.is_due(due.step, due.attempt):
            _log.info("step was committed by another worker", action=due.action, step=due.step)
            return False
        run = changed
        if run.node(due.step).kind == "dispatch" and "report" in run.entry(due.step):
            # The report arrived before the commit of the dispatch.
            outcome = outcome_of_report(run.entry(due.step)["report"])


async def _outcome(step: DueStep, context: StepContext) -> Outcome:
    timeout = step.document.attempt_timeout
    try:
        async with asyncio.timeout(timeout.total_seconds()) as scope:
            return await perform(step, context)
    except InvalidInput as error:
        return Failed(str(error)[:MAX_TEXT_LENGTH], permanent=True)
    except TimeoutError:
        if not scope.expired():
            raise
        return TimedOut(f"it did not end within {format_duration(timeout)}")
    except (TargetBusy, *_SERVER_ERRORS):
        raise
    except Exception as error:
        if isinstance(error, psycopg.Error) and not is_row_fault(error):
            raise
        # An unexpected error is an outcome as well: otherwise the step would be delivered again
        # forever.
        _log.exception("step failed unexpectedly", action=step.run.name, step=step.node.number)
        return Failed(f"{type(error).__name__}: {error}"[:MAX_TEXT_LENGTH])
