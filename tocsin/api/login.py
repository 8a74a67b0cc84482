"""`/login`: begins a session with a one-time link. `/logout` ends it.

Opening the link shows a button, and pressing it uses the link: a program that previews links must not
use it up.
"""

from __future__ import annotations

from html import escape
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tocsin.api.access.cross_site import refuse_other_sites
from tocsin.api.access.permission import Public
from tocsin.api.access.sessions import begin_session, delete_cookie, end_session, session_of, set_cookie
from tocsin.api.context import context_of
from tocsin.api.form_page import form_page
from tocsin.api.limits import allow_body

AFTER_LOGIN = "/"
_MAX_FORM_BYTES = 4096


async def show_login(request: Request) -> Response:
    code = escape(request.query_params.get("code", "")[:200], quote=True)
    body = (
        f'<form method="post" action="/login"><input type="hidden" name="code" value="{code}">'
        "<button>Log in</button></form>"
        if code
        else "<p>Open the link that <code>tocsin up</code> or <code>tocsin token login</code> prints.</p>"
    )
    return form_page(body)


async def use_login(request: Request) -> Response:
    refuse_other_sites(request)
    allow_body(request, _MAX_FORM_BYTES)
    context = context_of(request)
    fields = parse_qs((await request.body()).decode("ascii", "replace"))
    async with context.session() as connection:
        session = await begin_session(connection, fields.get("code", [""])[0])
    response = RedirectResponse(AFTER_LOGIN, 303, headers={"cache-control": "no-store"})
    set_cookie(response, request, context.settings, session)
    return response


async def logout(request: Request) -> Response:
    refuse_other_sites(request)
    context = context_of(request)
    session = session_of(request, context.settings)
    if session is not None:
        async with context.session() as connection:
            await end_session(connection, session)
        context.tokens.forget()
    response = RedirectResponse("/login", 303, headers={"cache-control": "no-store"})
    delete_cookie(response, request, context.settings)
    return response


ROUTES = (
    Route("/login", Public(show_login, because="it has a form and no data"), methods=["GET"]),
    Route("/login", Public(use_login, because="the code of the link is the credential"), methods=["POST"]),
    Route("/logout", Public(logout, because="it ends the session of its own cookie"), methods=["POST"]),
)
