"""`/series`: what is stale, unknown or missing? The newest value of each series, and when it is due again."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from tocsin.api.v1.series import list_series
from tocsin.console.commands import command_line
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.policy import Operation


async def show_series(visit: Visit) -> Response:
    chosen = {name: visit.query(name) for name in ("owner", "key", "type")}
    stale = visit.query("stale") == "yes"
    page = await list_series(
        visit.access,
        visit.page_request(),
        owner=chosen["owner"] or None,
        key=chosen["key"] or None,
        type=chosen["type"] or None,
        stale=stale,
    )
    options = [word for name, text in chosen.items() if text for word in (f"--{name}", text)]
    facts = {
        "series": page.items,
        "cursor": page.next_cursor,
        "chosen": chosen,
        "stale": stale,
        "command": command_line("series", *options, *(("--stale",) if stale else ())),
    }
    return visit.page("pages/series.html", facts)


ROUTES = (Route("/series", console_page(Operation.VIEW_SERIES, show_series), methods=["GET"]),)
