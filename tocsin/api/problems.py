"""Errors as problem documents (RFC 9457), with the words of the command line.

`detail` is the message of a `TocsinError` and `remedy` its remedy, so a program shows the same text as
`tocsin`. `type` is a section of the reference page that the API serves. `errors` lists the places of
wrong values as JSON pointers, or as file, line and column.

Guarantee: an error that is not meant for people becomes 500 without any of its text; the log has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple

import psycopg
import pydantic_core
import structlog
from nats.errors import Error as NatsError
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from tocsin.api.access.secret_text import hide_secrets
from tocsin.core.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Refused,
    TocsinError,
    Unauthenticated,
    Unreachable,
)
from tocsin.core.sql_errors import INVALID, LOCK_TIMEOUT, LOST_RACE, OUTAGE

_log = structlog.get_logger()
MEDIA_TYPE = "application/problem+json"
PAGE = "/docs/problems"
NO_GRANT = "TS006"


class ProblemError(BaseModel):
    """One wrong value and its place."""

    detail: str
    pointer: str | None = Field(default=None, description="JSON pointer into the body, such as `#/cron`.")
    parameter: str | None = Field(default=None, description="Name of the query, path or header parameter.")
    file: str | None = None
    line: int | None = None
    column: int | None = None


class Problem(BaseModel):
    """RFC 9457. `detail` and `remedy` have the words of the command line."""

    type: str = Field(description="Section of the reference page that describes the problem.")
    title: str
    status: int
    detail: str
    remedy: str | None = None
    errors: list[ProblemError] | None = None


class ProblemKind(NamedTuple):
    status: HTTPStatus
    title: str


KINDS: Mapping[str, ProblemKind] = MappingProxyType(
    {
        "malformed": ProblemKind(HTTPStatus.BAD_REQUEST, "The request cannot be read"),
        "unauthenticated": ProblemKind(HTTPStatus.UNAUTHORIZED, "Valid credentials are missing"),
        "forbidden": ProblemKind(HTTPStatus.FORBIDDEN, "The grants of the caller do not allow this"),
        "cross-site": ProblemKind(HTTPStatus.FORBIDDEN, "The request comes from another site"),
        "not-found": ProblemKind(HTTPStatus.NOT_FOUND, "There is no such thing"),
        "wrong-method": ProblemKind(HTTPStatus.METHOD_NOT_ALLOWED, "The path does not know this method"),
        "too-slow": ProblemKind(HTTPStatus.REQUEST_TIMEOUT, "The request took too long"),
        "refused": ProblemKind(HTTPStatus.CONFLICT, "The state of the instance forbids this"),
        "changed": ProblemKind(HTTPStatus.PRECONDITION_FAILED, "It was changed meanwhile"),
        "too-large": ProblemKind(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too large"),
        "wrong-type": ProblemKind(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The type of the body is not supported"),
        "invalid": ProblemKind(HTTPStatus.UNPROCESSABLE_ENTITY, "A value is wrong"),
        "no-precondition": ProblemKind(HTTPStatus.PRECONDITION_REQUIRED, "If-Match is missing"),
        "too-many": ProblemKind(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests"),
        "defect": ProblemKind(HTTPStatus.INTERNAL_SERVER_ERROR, "The API failed"),
        "unavailable": ProblemKind(HTTPStatus.SERVICE_UNAVAILABLE, "A server that is needed does not answer"),
    }
)
_KIND_OF_ERROR: tuple[tuple[type[Exception], str], ...] = (
    (Unauthenticated, "unauthenticated"),
    (Forbidden, "forbidden"),
    (NotFound, "not-found"),
    (InvalidInput, "invalid"),
    (Refused, "refused"),
    (Conflict, "refused"),
    (Unreachable, "unavailable"),
    (TocsinError, "refused"),
)
_KIND_OF_STATUS = MappingProxyType({kind.status: name for name, kind in reversed(list(KINDS.items()))})


class ProblemRaised(TocsinError):
    """An error of the API itself: a kind of problem, with headers and places."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        remedy: str = "",
        errors: Sequence[ProblemError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.kind = kind
        self.errors = list(errors)
        self.headers = dict(headers or {})


def problem_response(
    kind: str,
    detail: str,
    *,
    remedy: str = "",
    errors: Sequence[ProblemError] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    status, title = KINDS[kind]
    problem = Problem(
        type=f"{PAGE}#{kind}",
        title=title,
        status=status.value,
        detail=detail,
        remedy=remedy or None,
        errors=list(errors) or None,
    )
    body = problem.model_dump_json(exclude_none=True).encode()
    return Response(body, status.value, {"cache-control": "no-store", **(headers or {})}, MEDIA_TYPE)


def response_of(error: Exception) -> Response:
    """The problem that an error is."""
    if isinstance(error, ProblemRaised):
        return problem_response(
            error.kind, error.message, remedy=error.remedy, errors=error.errors, headers=error.headers
        )
    if isinstance(error, TocsinError):
        kind = next(name for cls, name in _KIND_OF_ERROR if isinstance(error, cls))
        return problem_response(
            kind, error.message, remedy=error.remedy, errors=_places(error), headers=_headers(kind)
        )
    if isinstance(error, psycopg.Error):
        return _response_of_postgres(error)
    if isinstance(error, NatsError | OSError | TimeoutError):
        return _unavailable("nats or another server")
    return problem_response("defect", "the API failed; its log has the reason")


def _places(error: TocsinError) -> list[ProblemError]:
    """The problems of rule files."""
    return [
        ProblemError(detail=problem.message, file=str(problem.file), line=problem.line, column=problem.column)
        for problem in getattr(error, "problems", ())
    ]


def _headers(kind: str) -> dict[str, str]:
    if kind == "unauthenticated":
        return {"www-authenticate": 'Bearer realm="tocsin"'}
    return {"retry-after": "1"} if kind == "unavailable" else {}


def _response_of_postgres(error: psycopg.Error) -> Response:
    if error.sqlstate == INVALID:
        return problem_response("invalid", str(error.diag.message_primary))
    if error.sqlstate == NO_GRANT:
        return problem_response("forbidden", str(error.diag.message_primary))
    if isinstance(error, (*OUTAGE, *LOST_RACE, LOCK_TIMEOUT, psycopg.errors.QueryCanceled)):
        return _unavailable("postgres")
    if isinstance(error, psycopg.DataError):
        return problem_response("invalid", "a value cannot be stored", remedy="check numbers and characters")
    _log.error("statement of the api failed", error=error)
    return problem_response("defect", "the API failed; its log has the reason")


def _unavailable(server: str) -> Response:
    return problem_response(
        "unavailable",
        f"{server} does not answer in time",
        remedy="try again",
        headers=_headers("unavailable"),
    )


async def handle_error(request: Request, error: Exception) -> Response:
    """The handler of all errors of the app."""
    response = response_of(error)
    if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.exception(
            "request failed", method=request.method, path=hide_secrets(request.url.path), error=error
        )
    return response


def response_of_status(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """The problem for a status of Starlette's own errors."""
    kind = _KIND_OF_STATUS.get(HTTPStatus(status), "malformed" if status < 500 else "defect")
    return problem_response(kind, detail, headers=headers)


def pointer_of(location: Sequence[Any]) -> str:
    """`#/recurrence/cron` of the location that pydantic reports."""
    return "#" + "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in location)


def to_json(value: Any) -> bytes:
    """JSON as the API writes it, also for instants, uuids and enums."""
    return pydantic_core.to_json(value)
