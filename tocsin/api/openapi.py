"""The OpenAPI 3.1 document of the API.

Guarantee: it describes what the app does: every error is `application/problem+json`, every operation
names the operation of the policy that it needs (`x-tocsin-operation`), and plain routes that the
groups describe are part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tocsin.api.problems import MEDIA_TYPE, Problem
from tocsin.api.route_group import RouteGroup, guarded_routes

_DESCRIPTION = (
    "Schedules, alarms and actions of a Tocsin instance. Every error is a problem document (RFC 9457) with "
    "the words of the command line. Lists have at most 500 entries and a cursor for the next page."
)


def problem_responses() -> dict[int | str, dict[str, Any]]:
    """The answers that every operation can have. FastAPI adds no 422 of its own beside `4XX`."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        "4XX": {"description": "The request is wrong or refused.", "content": content},
        "5XX": {"description": "The API or a server that it needs failed.", "content": content},
    }


def describe(app: FastAPI, groups: Sequence[RouteGroup]) -> None:
    """Let the app write its document with what FastAPI does not know."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app, groups)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _document(app: FastAPI, groups: Sequence[RouteGroup]) -> dict[str, Any]:
    document = get_openapi(
        title="Tocsin",
        version=version("tocsin"),
        openapi_version="3.1.0",
        description=_DESCRIPTION,
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs", {})
    schemas["Problem"] = problem
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "Made by `tocsin token add`."}
    }
    document["security"] = [{"token": []}]
    for route in guarded_routes(groups):
        for method in route.methods:
            described = document["paths"].get(route.path, {}).get(method.lower())
            if described is not None and route.operation is not None:
                described["x-tocsin-operation"] = route.operation.value
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    return document
