"""`/actions`: what was done, what could not be done? Runs with their steps, retry and cancel; notifications."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, get_args

from starlette.responses import Response
from starlette.routing import Route

from rules.alarms.notifications import STATES, list_notifications, status_text
from rules.runbook.states import ACTIVE_STEP
from timers.recurrence.zones import zone
from timers.time_text import duration_text
from tocsin.api.v1.actions import (
    AttemptView,
    RunState,
    cancel_one_run,
    list_runs,
    read_run,
    retry_one_run,
)
from tocsin.console.commands import command_line
from tocsin.console.filters import short
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.core.errors import InvalidInput
from tocsin.core.printable import plain_json
from tocsin.pictures.runbook import RunStep, StepState, runbook_timeline
from tocsin.policy import Operation

_RUN_STATES = get_args(RunState)
_STEP_STATES: dict[str, StepState] = {
    "completed": "done",
    "failed": "failed",
    "timed_out": "failed",
    "skipped": "skipped",
    "cancelled": "skipped",
    "waiting": "waiting",
    "due": "running",
}
_NOTIFICATIONS = 200


async def show_runs(visit: Visit) -> Response:
    chosen = {name: visit.query(name) for name in ("state", "rule", "owner", "name")}
    if chosen["state"] not in ("", *_RUN_STATES):
        raise InvalidInput(f"unknown state {chosen['state']!r}", remedy=f"use {', '.join(_RUN_STATES)}")
    page = await list_runs(
        visit.access,
        visit.page_request(),
        state=chosen["state"] or None,  # type: ignore[arg-type] # one of RunState
        name=chosen["name"] or None,
        rule=chosen["rule"] or None,
        owner=chosen["owner"] or None,
    )
    options = [word for name, text in chosen.items() if text for word in (f"--{name}", text)]
    facts = {
        "runs": page.items,
        "cursor": page.next_cursor,
        "chosen": chosen,
        "states": _RUN_STATES,
        "command": command_line("actions", *options),
    }
    return visit.page("pages/runs.html", facts)


async def show_run(visit: Visit) -> Response:
    run = await read_run(visit.access, visit.path_id("action"))
    picture = runbook_timeline(
        [_step(each) for each in run.steps], zone(visit.tz), title=f"run of {run.name}"
    )
    facts = {
        "run": run,
        "picture": picture if run.steps else None,
        "is_dead": run.state in ("failed", "timed_out"),
        "is_active": run.ended_at is None,
        "commands": {
            verb: command_line("actions", verb, short(run.id)) for verb in ("retry", "cancel", "show")
        },
    }
    return visit.page("pages/run.html", facts)


def _step(attempt: AttemptView) -> RunStep:
    result = attempt.result
    detail = str(
        result.get("error") or result.get("reason") or result.get("message") or result.get("text") or ""
    )
    return RunStep(
        name=attempt.name,
        state=_STEP_STATES.get(attempt.state, "running" if attempt.state in ACTIVE_STEP else "pending"),
        kind=attempt.kind,
        at=attempt.due_at,
        took="" if attempt.took_ms is None else f"{attempt.took_ms} ms",
        detail=detail,
        attempts=attempt.attempt,
        answer=plain_json(json.dumps(result, ensure_ascii=False, default=str)) if result else "",
    )


def _change(verb: str) -> Callable[[Visit], Awaitable[Response]]:
    async def screen(visit: Visit) -> Response:
        id = visit.path_id("action")
        if verb == "retry":
            retried = await retry_one_run(visit.access, id)
            text = f"started run {short(id)} again from step {', '.join(map(str, retried.steps))}"
        else:
            await cancel_one_run(visit.access, id)
            text = f"cancelled run {short(id)}"
        return visit.done(f"/actions/{id}", text, command=command_line("actions", verb, short(id)))

    return screen


async def show_notifications(visit: Visit) -> Response:
    state = visit.query("state")
    if state not in ("", *STATES):
        raise InvalidInput(f"unknown state {state!r}", remedy=f"use {', '.join(STATES)}")
    channel = visit.query("channel")
    rows = await list_notifications(
        visit.connection,
        states=(state,) if state else None,
        channel=channel or None,
        owners=visit.access.owners,
        limit=_NOTIFICATIONS,
    )
    facts = {
        "notifications": [_notification(row, visit) for row in rows],
        "state": state,
        "channel": channel,
        "states": STATES,
        "is_cut": len(rows) == _NOTIFICATIONS,
        "command": command_line("notifications", *(("--state", state) if state else ())),
    }
    return visit.page("pages/notifications.html", facts)


def _notification(row: dict[str, Any], visit: Visit) -> dict[str, Any]:
    """Without the ids of alarms of other owners that inhibit."""
    held_by = row["held_by"]
    if held_by and not visit.sees_all:
        held_by = ["inhibit" if key.startswith("alarm:") else key for key in held_by]
    shown = {**row, "held_by": held_by}
    failing = row["failing_since"]
    return {
        **shown,
        "text": status_text(shown),
        "failing_for": duration_text(visit.now - failing) if failing else "",
    }


ROUTES = (
    Route("/actions", console_page(Operation.VIEW_ACTIONS, show_runs), methods=["GET"]),
    Route("/actions/{id}", console_page(Operation.VIEW_ACTIONS, show_run), methods=["GET"]),
    Route("/actions/{id}/retry", console_page(Operation.RETRY_RUN, _change("retry")), methods=["POST"]),
    Route("/actions/{id}/cancel", console_page(Operation.CANCEL_RUN, _change("cancel")), methods=["POST"]),
    Route("/notifications", console_page(Operation.VIEW_ALARMS, show_notifications), methods=["GET"]),
)
