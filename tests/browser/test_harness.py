"""The harness of the browser tests notices what it is there to notice."""

from __future__ import annotations

import sys

import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from tests.api.running_api import RunningApi
from tests.browser.chromium import find_chromium
from tests.browser.conftest import Visit
from tests.wait import eventually
from tocsin.api.access.permission import Public
from tocsin.api.route_group import RouteGroup
from tocsin.api.routes import GROUPS

BAD = """<!doctype html><title>bad</title><style>p { color: red }</style><p>text</p>
<script nonce=x>console.error("boom"); setTimeout(() => { throw new Error("bang") })</script>
<img src="http://other.invalid/x.png" alt=""><img src="/broken">"""
POLICY = {"content-security-policy": "default-src 'none'; script-src 'nonce-x'; img-src *"}


async def bad_page(request: Request) -> Response:
    return HTMLResponse(BAD, headers=POLICY)


async def broken(request: Request) -> Response:
    return PlainTextResponse("broken", 500)


BAD_PAGES = RouteGroup(
    "bad pages",
    routes=[
        Route("/bad", Public(bad_page, because="a test"), methods=["GET"]),
        Route("/broken", Public(broken, because="a test"), methods=["GET"]),
    ],
)


async def test_a_person_is_logged_in(visit: Visit) -> None:
    ann = await visit("viewer:plant-*")
    await ann.open("/v1/me")
    assert ann.name in await ann.page.content()
    assert ann.problems == []


@pytest.mark.parametrize("groups", [(*GROUPS, BAD_PAGES)], indirect=True)
async def test_each_kind_of_problem_is_noticed(api: RunningApi, visit: Visit) -> None:
    ann = await visit()
    await ann.open("/bad")

    async def has_all() -> bool:
        kinds = ("console: boom", "exception: ", "policy: style-src", "status 500", "request to another host")
        return all(any(problem.startswith(kind) for problem in ann.problems) for kind in kinds)

    await eventually(has_all, f"all kinds of problems: {ann.problems}")
    found = {violation["rule"] for violation in await ann.find_inaccessible()}
    assert {"html-has-lang", "image-alt"} <= found
    ann.take_problems()


def test_a_program_that_is_named_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOCSIN_TEST_CHROMIUM", sys.executable)
    assert find_chromium() == sys.executable
