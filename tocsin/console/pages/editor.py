"""`/editor`: what would this change do? A document with its problems, its plan and its last days replayed.

The text is checked and planned after each pause of typing, and then replayed on the recorded data. Each of
these runs in a process that can be killed (`tocsin.api.rule_files`), within a short time, and a newer one
ends the one before it. None holds a session of the database while it waits.

Without a script the same forms answer with whole pages. An apply names the version of the rule set that the
editor showed, so it overwrites no other one.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from rules.documents.applied import check_kind, list_applied, list_versions
from rules.documents.yaml_text import document_text
from schemas.documents import DOCUMENT_KINDS
from tocsin.api.access.permission import Access
from tocsin.api.problems import ProblemError, ProblemRaised
from tocsin.api.rule_files.command import RuleFile
from tocsin.api.rule_files.routes import (
    AppliedFiles,
    PlannedFiles,
    ReplayedFiles,
    apply_rules,
    plan_rules,
    replay_rules,
    rules_seq,
)
from tocsin.console.form import Form, read_form
from tocsin.console.latest import Latest
from tocsin.console.page import ConsolePage, console_page, new_nonce, visiting
from tocsin.console.pages.rule_history import MOST_VERSIONS
from tocsin.console.render import page_headers, render
from tocsin.console.replay_view import replay_facts
from tocsin.console.visit import Visit
from tocsin.core.errors import NotFound, TocsinError
from tocsin.policy import Operation

FILE = "rule.yaml"
SINCE = "7d"
_REPLAY_WITHIN_S = 120.0
_PERIODS = ("1d", "7d", "30d")
_EXAMPLE = """event_rule:
  name: room-hot
  datapoint: room.temperature
  fire: 'value > 30.0'
  clear: 'value < 28.0'
  for: 5m
  severity: high
"""
Facts = dict[str, Any]
_latest = Latest()


async def show_editor(visit: Visit) -> Response:
    kind, name = visit.query("kind"), visit.query("name")
    facts = await _document(visit, kind, name) if name else _new_document(kind)
    seq = await rules_seq(visit.access)
    return _page(visit, {**facts, "seq": seq})


async def _document(visit: Visit, kind: str, name: str) -> Facts:
    """The document in force, or an older version of it to roll back to."""
    check_kind(kind)
    version = visit.query("version")
    if version:
        rows = await list_versions(visit.connection, kind, name, limit=MOST_VERSIONS)
        rows = [row for row in rows if str(row["version"]) == version]
    else:
        rows = await list_applied(visit.connection, kind, name)
    if not rows:
        raise NotFound(f"there is no {kind} {name!r}", remedy="`tocsin rules` lists the documents in force")
    return {"kind": kind, "name": name, "version": version, "text": document_text(kind, rows[0]["document"])}


def _new_document(kind: str) -> Facts:
    text = _EXAMPLE if kind in ("", "event_rule") else f"{kind}:\n  name: \n"
    if kind:
        check_kind(kind)
    return {"kind": kind, "name": "", "version": "", "text": text}


def _page(visit: Visit, facts: Facts) -> Response:
    page = {
        **{
            "kinds": list(DOCUMENT_KINDS),
            "periods": _PERIODS,
            "since": SINCE,
            "page_key": secrets.token_urlsafe(12),
        },
        **{"kind": "", "name": "", "version": "", "plan": None, "replay": None},
        **facts,
    }
    return visit.page("pages/rule_editor.html", page)


Work = Callable[[Request, Access, Form], Awaitable[Facts]]


def _panel(operation: Operation, template: str, work: Work) -> ConsolePage:
    """A part of the editor for htmx, or the whole page with it for a plain form."""

    async def endpoint(request: Request, access: Access) -> Response:
        form = await read_form(request)
        facts = await work(request, access, form)
        if "hx-request" in request.headers:
            nonce = new_nonce()
            return HTMLResponse(
                render(template, {"Operation": Operation, **facts}), headers=page_headers(nonce)
            )
        seq = form.number("seq") or 0
        async with visiting(request, access) as visit:
            given = {
                "text": form.text("text"),
                "seq": seq,
                "kind": form.text("kind"),
                "name": form.text("name"),
            }
            return _page(visit, {**given, **facts})

    return ConsolePage(operation, endpoint)


async def plan(request: Request, access: Access, form: Form) -> Facts:
    """The problems of the text at their places, or what an apply would change."""
    body = PlannedFiles(files=_files(form))
    try:
        answer = await _latest.run(_key(access, form, "plan"), plan_rules(access, request, Response(), body))
    except TocsinError as error:
        return {"plan": {"problems": _problems(error), "remedy": error.remedy}}
    return {"plan": None if answer is None else {"problems": [], **answer}}


async def replay(request: Request, access: Access, form: Form) -> Facts:
    """The last days with these rules, compared with what was recorded."""
    since = form.text("since", SINCE)
    if since not in _PERIODS:
        since = SINCE
    body = ReplayedFiles(files=_files(form), since=since)
    try:
        report = await _latest.run(
            _key(access, form, "replay"), replay_rules(request, access, body, _REPLAY_WITHIN_S)
        )
    except TocsinError as error:
        return {"replay": {"error": _problems(error)[0].detail}, "since": since}
    if report is None:
        return {"replay": {"error": "replaced by a newer replay"}, "since": since}
    return {"replay": replay_facts(report), "since": since}


async def apply(request: Request, access: Access) -> Response:
    form = await read_form(request)
    body = AppliedFiles(files=_files(form))
    facts: Facts
    try:
        answer = await apply_rules(access, request, Response(), body, f'"{form.number("seq") or 0}"')
    except TocsinError as error:
        facts = {"plan": {"problems": _problems(error), "remedy": error.remedy}}
        async with visiting(request, access) as visit:
            given = {"text": form.text("text"), "kind": form.text("kind"), "name": form.text("name")}
            return _page(visit, {**given, **facts, "seq": await rules_seq(visit.access)})
    async with visiting(request, access) as visit:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in answer.get("counts", {}).items())
        return visit.done(
            _after_apply(form), f"applied: {counts or 'no changes'}", command=f"tocsin apply {FILE}"
        )


def _key(access: Access, form: Form, work: str) -> str:
    """The work of one open page; empty if the form names none."""
    page = form.text("page_key")[:40]
    return f"{access.caller.name}:{page}:{work}" if page else ""


def _after_apply(form: Form) -> str:
    kind, name = form.text("kind"), form.text("name")
    return f"/editor?kind={quote(kind)}&name={quote(name)}" if kind and name else "/rules"


def _files(form: Form) -> list[RuleFile]:
    return [RuleFile(name=FILE, text=form.text("text"))]


def _problems(error: TocsinError) -> list[ProblemError]:
    places = list(error.errors) if isinstance(error, ProblemRaised) else []
    return places or [ProblemError(detail=str(error))]


ROUTES = (
    # A channel may have an address with a token in it: its text is for authors.
    Route("/editor", console_page(Operation.PLAN_RULES, show_editor), methods=["GET"]),
    Route("/editor/plan", _panel(Operation.PLAN_RULES, "parts/rule_plan.html", plan), methods=["POST"]),
    Route("/editor/replay", _panel(Operation.TEST_RULES, "parts/rule_replay.html", replay), methods=["POST"]),
    Route("/editor/apply", ConsolePage(Operation.APPLY_RULES, apply), methods=["POST"]),
)
