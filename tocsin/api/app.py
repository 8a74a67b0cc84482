"""The ASGI app: the groups of routes, inside the limits, with every error as a problem.

Guarantee: `create_app` raises for a route that does not decide who may use it. FastAPI's own errors
(validation, unknown path, wrong method) are problems too, and the OpenAPI document describes them so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import psycopg
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from nats.errors import Error as NatsError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from schemas.error_text import fault_text
from tocsin.api.context import ApiContext
from tocsin.api.idempotency import IdempotentWrites
from tocsin.api.limits import LimitRequests
from tocsin.api.openapi import describe, problem_responses
from tocsin.api.problems import (
    ProblemError,
    handle_error,
    pointer_of,
    problem_response,
    response_of,
    response_of_status,
)
from tocsin.api.route_group import PREFIX, RouteGroup, guarded_routes
from tocsin.api.routes import GROUPS
from tocsin.core.errors import TocsinError


def create_app(context: ApiContext, groups: Sequence[RouteGroup] = GROUPS) -> ASGIApp:
    """The app with its limits."""
    return LimitRequests(
        IdempotentWrites(create_api(groups, context), context),
        max_body_bytes=context.settings.api_body_bytes,
        time_limit_s=context.settings.api_request_s,
    )


def create_api(groups: Sequence[RouteGroup] = GROUPS, context: ApiContext | None = None) -> FastAPI:
    """The app without its limits. Without a context it can only be described."""
    list(guarded_routes(groups))
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=problem_responses(),
        generate_unique_id_function=_operation_id,
        separate_input_output_schemas=False,
        strict_content_type=True,
    )
    app.state.context = context
    for group in groups:
        if group.router is not None:
            app.include_router(group.router, prefix=PREFIX)
        app.router.routes.extend(group.routes)
    describe(app, groups)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    for error in (TocsinError, psycopg.Error, NatsError, OSError, TimeoutError, Exception):
        app.add_exception_handler(error, handle_error)
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name


async def _invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [_place(details) for details in error.errors()]
    if any(details["type"] == "json_invalid" for details in error.errors()):
        return problem_response(
            "malformed", "the body is not JSON", remedy="send a JSON object", errors=errors
        )
    first = errors[0]
    place = first.parameter or (first.pointer or "#").removeprefix("#/").replace("/", ".")
    detail = first.detail if place in ("#", "") else f"{place}{first.detail}"
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return problem_response("invalid", f"{detail.lstrip(': ')}{more}", errors=[_trimmed(e) for e in errors])


def _trimmed(error: ProblemError) -> ProblemError:
    return error.model_copy(update={"detail": error.detail.lstrip(": ")})


def _place(details: Any) -> ProblemError:
    location = details["loc"]
    text = fault_text(cast(ErrorDetails, {"input": None, "ctx": {}, **details}))
    if location and location[0] == "body":
        return ProblemError(detail=text, pointer=pointer_of(location[1:]))
    return ProblemError(detail=text, parameter=".".join(str(part) for part in location[1:]) or None)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, TocsinError):  # FastAPI wraps an error while the body is read
        return response_of(error.__cause__)
    path = request.url.path
    texts = {404: f"there is no {path!r}", 405: f"{path!r} does not know {request.method}"}
    detail = texts.get(error.status_code, str(error.detail))
    return response_of_status(error.status_code, detail, error.headers)
