"""A token in the path of a URL, for clients that cannot send a header, such as calendar programs.

A URL is written into logs and histories. So a token in a path works for these routes only, whatever else
it may do; give it no other grants. `hide_secrets` removes it from what the API itself logs.
"""

from __future__ import annotations

from starlette.requests import Request

from tocsin.api.access.caller import Caller
from tocsin.api.access.credentials import caller_of_token
from tocsin.api.context import context_of

PATH_TOKEN = "token"  # noqa: S105 the name of a part of the path


async def authenticate_by_path(request: Request) -> Caller:
    """The caller of the token in the path. Raises `Unauthenticated`."""
    return await caller_of_token(context_of(request), request.path_params[PATH_TOKEN])
