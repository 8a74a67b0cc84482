"""`digest`: what there is to tell, looked up, rendered, and sent through a channel or kept as an answer.

Guarantee: what is looked up is as of this moment; events are those since the same rule's action ran before. `counts`
has the whole numbers, the lists at most `limit` rows each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psycopg.rows import dict_row

from rules.actions.steps.deliver import send_through
from rules.actions.steps.digest_message import digest_message
from rules.actions.steps.task import Task
from rules.delivery.message import Message
from rules.language.templates import fill_html, fill_text
from rules.runbook import Completed, Outcome
from schemas.documents.runbook.looks import QUERIES, DigestStep
from schemas.values.severities import level_name
from schemas.wire.event_facts import event_facts
from tocsin.core.db import Connection, fetch_one, statement

# What a next step may put into a message of its own.
_LONGEST_ANSWER = 50_000


async def perform_digest(task: Task) -> Outcome:
    step = task.node.step.digest
    assert step is not None
    async with task.world.sessions() as connection:
        found = await look_up(connection, task, step)
    message = digest_of(task, step, found)
    counts = found["counts"]
    if step.channel is not None:
        outcome = await send_through(task, step.channel, message)
        return Completed({**outcome.answer, "counts": counts}) if isinstance(outcome, Completed) else outcome
    answer = {"subject": message.title, "text": message.text[:_LONGEST_ANSWER], "counts": counts}
    return Completed({**answer, **({"html": message.html[:_LONGEST_ANSWER]} if message.html else {})})


async def look_up(connection: Connection, task: Task, step: DigestStep) -> dict[str, Any]:
    """The rows of each query under its name, and `counts` of all."""
    action = task.action
    own = {"rule": action.rule, "started_at": action.started_at, "seq": action.event_seq}
    row = await fetch_one(connection, "rules.actions/read_previous_seq", own)
    parameters = {"limit": step.limit, "after": row[0] if row else 0, "upto": action.event_seq}
    found: dict[str, Any] = {query: [] for query in QUERIES}
    counts: dict[str, int] = {}
    async with connection.cursor(row_factory=dict_row) as cursor:
        for query in step.queries:
            await cursor.execute(statement(f"rules.actions/list_{_LISTED[query]}"), parameters)
            rows = await cursor.fetchall()
            counts[query] = int(rows[0]["count"]) if rows else 0
            found[query] = [_SHOWN[query](row) for row in rows]
    return {**found, "counts": counts}


def _alarm(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "id": str(row["id"]), "severity": level_name(row["severity"])}


_LISTED = {"open_alarms": "open_alarms", "events": "new_events", "stale_series": "stale_series"}
_SHOWN: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "open_alarms": _alarm,
    "events": event_facts,
    "stale_series": dict,
}


def digest_of(task: Task, step: DigestStep, found: dict[str, Any]) -> Message:
    """The author's own text replaces all of ours."""
    ours, data = digest_message(found), {**task.data, **found}
    return Message(
        subject=ours.subject if step.subject is None else fill_text(step.subject, data),
        text=ours.text if step.text is None else fill_text(step.text, data),
        html=fill_html(step.html, data) if step.html is not None else None if step.text else ours.html,
        payload=ours.payload if step.text is None else None,
    )
