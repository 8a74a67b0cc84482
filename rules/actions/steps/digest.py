"""Step `digest`: sums up the alarms since the previous digest, and lists what needs attention.

If the step names a channel, the digest is sent to it. Otherwise it becomes the answer of the step,
for later steps.

Guarantee: the period begins with the previous run of the same rule. The first digest covers one
period of its schedule, or a day. Alarms and series are listed as they are when the step runs.
`rules.actions.steps.digest_results` decides what is shown, for rule tests as well.
"""

from __future__ import annotations

from typing import Any

from rules.actions.steps.context import StepContext
from rules.actions.steps.deliver import send_through_channel
from rules.actions.steps.digest_message import digest_message
from rules.actions.steps.digest_results import MAX_ROWS, DigestMaterial, digest_period, digest_results
from rules.actions.steps.due_step import DueStep
from rules.runbook import Completed, Outcome
from schemas.documents.runbook.digest import DigestStep
from schemas.wire.event_facts import event_facts
from tocsin.core.db import Connection, fetch_dicts, fetch_one

# Longest text in the answer, for later steps. A digest that is sent through a channel is not cut.
_MAX_ANSWER_LENGTH = 50_000


async def perform_digest(step: DueStep, context: StepContext) -> Outcome:
    digest = step.document.digest
    assert digest is not None
    async with context.open_session() as connection:
        results = await read_digest(connection, step, digest)
    counts = results["counts"]
    if digest.channel is not None:
        outcome = await send_through_channel(
            step, context, digest.channel, lambda view: digest_message(step, digest, results, view)
        )
        return Completed({**outcome.answer, "counts": counts}) if isinstance(outcome, Completed) else outcome
    message = digest_message(step, digest, results)
    answer = {"subject": message.subject_line, "text": message.text[:_MAX_ANSWER_LENGTH], "counts": counts}
    if message.html:
        answer["html"] = message.html[:_MAX_ANSWER_LENGTH]
    return Completed(answer)


async def read_digest(connection: Connection, step: DueStep, digest: DigestStep) -> dict[str, Any]:
    """The results of a digest (`digest_results`) at the start of its run."""
    run = step.run
    values = {
        "rule": run.rule,
        "started_at": run.started_at,
        "seq": run.event_seq,
        "schedule": step.facts.event["schedule"],
        "owner": step.facts.event["owner"],
    }
    row = await fetch_one(connection, "rules.actions/read_digest_period", values)
    assert row is not None
    previous_seq, previous_at, next_at = row
    since = digest_period(previous_at, next_at, run.started_at)
    is_first = previous_seq is None
    if is_first:
        last = await fetch_one(connection, "rules.actions/find_last_seq_before", {"since": since})
        previous_seq = last[0] if last else 0
    parameters = {
        "since": since,
        "limit": MAX_ROWS,
        "after_seq": previous_seq,
        "until_seq": run.event_seq,
    }
    rows = {
        field: await fetch_dicts(connection, f"rules.actions/{name}", parameters)
        for query, (field, name) in _STATEMENTS.items()
        if query in digest.queries
    }
    rows["events"] = [event_facts(event) for event in rows.get("events", ())]
    return digest_results(digest, DigestMaterial(since, run.started_at, is_first, **rows))


_STATEMENTS = {
    "summary": ("alarms", "list_digest_alarms"),
    "open_alarms": ("alarms", "list_digest_alarms"),
    "events": ("events", "list_new_events"),
    "stale_series": ("stale_series", "list_stale_series"),
    "undelivered": ("dead_runs", "list_dead_runs"),
    "dead_runs": ("dead_runs", "list_dead_runs"),
}
"""The statement that each query needs, and the part of the material that it gives."""
