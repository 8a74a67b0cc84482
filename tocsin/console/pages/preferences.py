"""`POST /preferences`: the theme and the zone of this browser."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tocsin.api.access.cross_site import refuse_other_sites
from tocsin.api.access.permission import Public
from tocsin.console.form import read_form
from tocsin.console.page import error_page
from tocsin.console.preferences import keep_preferences
from tocsin.core.errors import TocsinError


async def set_preferences(request: Request) -> Response:
    try:
        refuse_other_sites(request)
        form = await read_form(request)
        response = RedirectResponse(_own_path(form.text("back")), 303, headers={"cache-control": "no-store"})
        keep_preferences(response, request, form.text("theme", "auto"), form.text("zone", "UTC"))
    except TocsinError as error:
        return error_page(request, error)
    return response


def _own_path(text: str) -> str:
    """A path of this host: `//host` and `/\\host` lead to others."""
    is_path = text.startswith("/") and text[1:2] not in ("/", "\\") and text.isprintable()
    return text if is_path else "/"


ROUTES = (
    Route(
        "/preferences",
        Public(set_preferences, because="it sets cookies of the browser that asks, and reads nothing"),
        methods=["POST"],
    ),
)
