"""Step `digest`: list open alarms, events and stale series, and send the list or keep it as an
answer.

Guarantee: alarms and series are listed as of this moment; events are those since the previous run
of the same rule. `counts` has the totals, the lists have at most `limit` rows each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psycopg.rows import dict_row

from rules.actions.run import ActionRun
from rules.actions.steps.context import StepContext
from rules.actions.steps.deliver import send_through
from rules.actions.steps.digest_message import digest_message
from rules.actions.steps.due_step import DueStep
from rules.runbook import Completed, Outcome
from schemas.documents.runbook.digest import QUERIES, DigestStep
from schemas.values.severities import level_name
from schemas.wire.event_facts import event_facts
from tocsin.core.db import Connection, fetch_one, statement

# Longest part of a digest that a later step can put into a message of its own.
_MAX_ANSWER_LENGTH = 50_000


async def perform_digest(step: DueStep, context: StepContext) -> Outcome:
    digest = step.document.digest
    assert digest is not None
    async with context.sessions() as connection:
        results = await read_digest(connection, step.run, digest)
    message = digest_message(step, digest, results)
    counts = results["counts"]
    if digest.channel is not None:
        outcome = await send_through(step, context, digest.channel, message)
        return Completed({**outcome.answer, "counts": counts}) if isinstance(outcome, Completed) else outcome
    answer = {"subject": message.title, "text": message.text[:_MAX_ANSWER_LENGTH], "counts": counts}
    return Completed({**answer, **({"html": message.html[:_MAX_ANSWER_LENGTH]} if message.html else {})})


async def read_digest(connection: Connection, run: ActionRun, digest: DigestStep) -> dict[str, Any]:
    """The rows of each query under its name, and `counts` of all."""
    values = {"rule": run.rule, "started_at": run.started_at, "seq": run.event_seq}
    row = await fetch_one(connection, "rules.actions/read_previous_seq", values)
    parameters = {"limit": digest.limit, "after": row[0] if row else 0, "upto": run.event_seq}
    results: dict[str, Any] = {query: [] for query in QUERIES}
    counts: dict[str, int] = {}
    async with connection.cursor(row_factory=dict_row) as cursor:
        for query in digest.queries:
            await cursor.execute(statement(f"rules.actions/list_{_LISTS[query]}"), parameters)
            rows = await cursor.fetchall()
            counts[query] = int(rows[0]["count"]) if rows else 0
            results[query] = [_FACTS[query](row) for row in rows]
    return {**results, "counts": counts}


def _alarm_facts(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "id": str(row["id"]), "severity": level_name(row["severity"])}


_LISTS = {"open_alarms": "open_alarms", "events": "new_events", "stale_series": "stale_series"}
_FACTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "open_alarms": _alarm_facts,
    "events": event_facts,
    "stale_series": dict,
}
