"""`/rules`: which documents are in force, and since when? Each as YAML; toggling and deleting one.

Every change is planned first: the page shows what an apply would change, and its button applies exactly that
text. The version of the rule set guards it: after an apply by someone else it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from rules.documents.applied import check_kind, list_applied
from schemas.documents import DOCUMENT_KINDS
from tocsin.api.rule_files.routes import AppliedFiles, PlannedFiles, apply_rules, plan_rules
from tocsin.console.commands import command_line
from tocsin.console.document_text import yaml_of
from tocsin.console.form import read_form
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.core.errors import InvalidInput, NotFound
from tocsin.policy import Operation

FILE = "console.yaml"
_MOST_TEXT = 200_000
Row = dict[str, Any]


async def show_rules(visit: Visit) -> Response:
    kind = visit.query("kind")
    check_kind(kind or None)
    rows = await list_applied(visit.connection, kind or None)
    facts = {
        "documents": rows,
        "kind": kind,
        "kinds": list(DOCUMENT_KINDS),
        "command": command_line("rules", *((kind,) if kind else ())),
    }
    return visit.page("pages/rules.html", facts)


async def read_document(visit: Visit, kind: str, name: str) -> Row:
    check_kind(kind)
    rows = await list_applied(visit.connection, kind, name)
    if not rows:
        raise NotFound(f"no {kind} {name!r} is applied")
    return rows[0]


async def show_rule(visit: Visit) -> Response:
    kind, name = visit.request.path_params["kind"], visit.request.path_params["name"]
    row = await read_document(visit, kind, name)
    facts = {
        "row": row,
        "text": yaml_of(kind, row["document"]),
        "enabled": row["document"].get("enabled"),
        "has_form": kind in ("event_rule", "channel"),
        "command": command_line("rules", kind, name, "--yaml"),
    }
    return visit.page("pages/rule.html", facts)


async def toggle(visit: Visit) -> Response:
    kind, name = visit.request.path_params["kind"], visit.request.path_params["name"]
    row = await read_document(visit, kind, name)
    enabled = row["document"].get("enabled")
    if enabled is None:
        raise InvalidInput(f"a {kind} cannot be disabled", remedy="delete it, or edit it")
    document = {**row["document"], "enabled": not enabled}
    return await show_plan(visit, yaml_of(kind, document), f"{'Disable' if enabled else 'Enable'} {name}")


async def delete(visit: Visit) -> Response:
    """The plan of all documents but this one."""
    kind, name = visit.request.path_params["kind"], visit.request.path_params["name"]
    await read_document(visit, kind, name)
    rows = await list_applied(visit.connection)
    kept = [
        yaml_of(row["kind"], row["document"]) for row in rows if (row["kind"], row["name"]) != (kind, name)
    ]
    return await show_plan(visit, "---\n".join(kept), f"Delete {name}", prune=True)


async def show_plan(visit: Visit, text: str, title: str, *, prune: bool = False) -> Response:
    """What applying the text would change, and the button that does it."""
    response = Response()
    body = PlannedFiles.model_validate({"files": _files(text), "prune": prune})
    plan = await plan_rules(visit.access_to(Operation.PLAN_RULES), visit.request, response, body)
    facts = {
        "title": title,
        "text": text,
        "prune": prune,
        "etag": response.headers["etag"],
        "changes": _changes(plan),
        "warnings": plan.get("warnings", []),
        "command": command_line("apply", *(("--prune",) if prune else ()), "rules/"),
    }
    return visit.page("pages/plan.html", facts)


def _files(text: str) -> Sequence[Mapping[str, str]]:
    if len(text) > _MOST_TEXT:
        raise InvalidInput(
            f"the documents have {len(text):,} characters", remedy="apply rule files with `tocsin apply`"
        )
    return [{"name": FILE, "text": text}]


def _changes(plan: Mapping[str, Any]) -> list[Row]:
    """What changes; documents that stay as they are are left out."""
    return [change for change in plan.get("changes", ()) if change.get("outcome") != "unchanged"]


async def plan(visit: Visit) -> Response:
    form = await read_form(visit.request)
    return await show_plan(
        visit, form.text("text"), form.text("title", "Apply"), prune=form.text("prune") == "yes"
    )


async def apply(visit: Visit) -> Response:
    form = await read_form(visit.request)
    prune = form.text("prune") == "yes"
    body = AppliedFiles.model_validate({"files": _files(form.text("text")), "prune": prune})
    await apply_rules(visit.access, visit.request, Response(), body, form.text("etag") or None)
    title = form.text("title", "Apply")[:150]
    return visit.done("/rules", f"applied: {title}", command=command_line("rules"))


ROUTES = (
    Route("/rules", console_page(Operation.VIEW_RULES, show_rules), methods=["GET"]),
    Route("/rules/plan", console_page(Operation.PLAN_RULES, plan), methods=["POST"]),
    Route("/rules/apply", console_page(Operation.APPLY_RULES, apply), methods=["POST"]),
    Route("/rules/{kind}/{name}", console_page(Operation.VIEW_RULES, show_rule), methods=["GET"]),
    Route("/rules/{kind}/{name}/toggle", console_page(Operation.PLAN_RULES, toggle), methods=["POST"]),
    Route("/rules/{kind}/{name}/delete", console_page(Operation.PLAN_RULES, delete), methods=["POST"]),
)
