"""Step `digest`: lists open alarms, events and stale series.

If the step names a channel, the list is sent to it. Otherwise it becomes the answer of the step,
for later steps.

Guarantee: alarms and series are listed as they are when the step runs. Events are listed since the
previous run of the same rule. `counts` has the totals, even if a list is cut at `limit` rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psycopg.rows import dict_row

from rules.actions.run import ActionRun
from rules.actions.steps.context import StepContext
from rules.actions.steps.deliver import send_through_channel
from rules.actions.steps.digest_message import digest_message
from rules.actions.steps.due_step import DueStep
from rules.runbook import Completed, Outcome
from schemas.documents.runbook.digest import QUERIES, DigestStep
from schemas.values.severities import level_name
from schemas.wire.event_facts import event_facts
from tocsin.core.db import Connection, fetch_one, statement

# Longest text in the answer, for later steps. A digest that is sent through a channel is not cut.
_MAX_ANSWER_LENGTH = 50_000


async def perform_digest(step: DueStep, context: StepContext) -> Outcome:
    digest = step.document.digest
    assert digest is not None
    async with context.open_session() as connection:
        results = await read_digest(connection, step.run, digest)
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


async def read_digest(connection: Connection, run: ActionRun, digest: DigestStep) -> dict[str, Any]:
    """The rows of each query under its name, and under `counts` the total of each."""
    values = {"rule": run.rule, "started_at": run.started_at, "seq": run.event_seq}
    row = await fetch_one(connection, "rules.actions/read_previous_seq", values)
    parameters = {"limit": digest.limit, "after_seq": row[0] if row else 0, "until_seq": run.event_seq}
    results: dict[str, Any] = {query: [] for query in QUERIES}
    counts: dict[str, int] = {}
    async with connection.cursor(row_factory=dict_row) as cursor:
        for query in digest.queries:
            name, to_facts = _QUERIES[query]
            await cursor.execute(statement(f"rules.actions/{name}"), parameters)
            rows = await cursor.fetchall()
            # Each row has the total (a window function), because `limit` cuts the rows.
            counts[query] = int(rows[0]["count"]) if rows else 0
            results[query] = [to_facts(row) for row in rows]
    return {**results, "counts": counts}


def _alarm_facts(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "id": str(row["id"]), "severity": level_name(row["severity"])}


_QUERIES: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "open_alarms": ("list_open_alarms", _alarm_facts),
    "events": ("list_new_events", event_facts),
    "stale_series": ("list_stale_series", dict),
}
"""The statement of each query, and the function that turns a row into facts."""
