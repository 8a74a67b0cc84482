"""`/tocsin`: is Tocsin itself well? Leaders, lag, workers, timers that failed; the audit, and the tokens."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from cdc.report import read_report
from clock.retention.report import read_prune_report
from rules.lanes.status import count_recent_gaps, list_lanes, list_workers
from timers.working_set import list_timers
from tocsin.api.access.tokens import TokenChange, list_tokens, revoke_token
from tocsin.api.v1.audit import list_audit
from tocsin.api.v1.instance import run_doctor
from tocsin.console.commands import command_line
from tocsin.console.form import read_form
from tocsin.console.page import VIA, console_page
from tocsin.console.visit import Visit
from tocsin.core.db import fetch_dict
from tocsin.policy import Operation

_PARKED = 50
_TOKENS = 500
_BEHIND_S = 10.0
_LAG = 1000


async def show_instance(visit: Visit) -> Response:
    leader = await fetch_dict(visit.connection, "tocsin.console/read_leader")
    lanes = await list_lanes(visit.connection)
    report = await read_report(visit.connection)
    parked = await list_timers(visit.connection, kind=None, parked=True, limit=_PARKED)
    assert leader is not None
    facts = {
        "leader": leader,
        "lanes": lanes,
        "behind": [lane for lane in lanes if lane.holder is None or (lane.behind_s or 0) > _BEHIND_S],
        "report": report,
        "lag": max((leader["head"] or 0) - (report.last_seq or 0), 0)
        if report.last_seq is not None
        else None,
        "most_lag": _LAG,
        "gaps": await count_recent_gaps(visit.connection),
        "workers": await list_workers(visit.connection),
        "pruned": await read_prune_report(visit.connection),
        "parked": parked,
        "command": command_line("doctor"),
    }
    return visit.page("pages/instance.html", facts)


async def show_doctor(visit: Visit) -> Response:
    """The checks of `tocsin doctor`, those that are red first."""
    found = await run_doctor(visit.access)
    order = {"red": 0, "info": 1, "ok": 2}
    findings = sorted(found.findings, key=lambda finding: order[finding.state])
    red = sum(finding.state == "red" for finding in findings)
    return visit.page(
        "pages/doctor.html", {"findings": findings, "red": red, "command": command_line("doctor")}
    )


async def show_audit(visit: Visit) -> Response:
    name = visit.query("name")
    page = await list_audit(visit.access, visit.page_request(), name=name or None)
    facts = {
        "entries": [{"entry": entry, "changes": _changes(entry.old, entry.new)} for entry in page.items],
        "cursor": page.next_cursor,
        "name": name,
        "command": command_line("audit", *((name,) if name else ())),
    }
    return visit.page("pages/audit.html", facts)


def _changes(old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    """The keys that differ; nothing for something new or removed, which the verb says."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return []
    keys = sorted({*old, *new})
    return [(key, old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)]


async def show_tokens(visit: Visit) -> Response:
    tokens = (await list_tokens(visit.connection))[-_TOKENS:]
    facts = {"tokens": list(reversed(tokens)), "command": command_line("token", "list")}
    return visit.page("pages/tokens.html", facts)


async def revoke(visit: Visit) -> Response:
    form = await read_form(visit.request)
    token = form.text("id")
    row = await revoke_token(visit.connection, token, TokenChange(visit.caller.name, VIA))
    visit.access.context.tokens.forget()
    command = command_line("token", "revoke", row["name"])
    return visit.done("/tokens", f"revoked the token of {row['name']!r}", command=command)


ROUTES = (
    Route("/tocsin", console_page(Operation.VIEW_HEALTH, show_instance), methods=["GET"]),
    Route("/tocsin/doctor", console_page(Operation.VIEW_HEALTH, show_doctor), methods=["GET"]),
    Route("/audit", console_page(Operation.VIEW_AUDIT, show_audit), methods=["GET"]),
    Route("/tokens", console_page(Operation.MANAGE_TOKENS, show_tokens), methods=["GET"]),
    Route("/tokens/revoke", console_page(Operation.MANAGE_TOKENS, revoke), methods=["POST"]),
)
