"""Fixtures of the tests in a browser: a Chromium per test, and people who are logged in."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

import pytest
from playwright.async_api import Browser, async_playwright

from tests.api.running_api import RunningApi, running_api
from tests.browser.chromium import MISSING, OPTIONS, find_chromium
from tests.browser.visitor import Visitor
from tocsin.api.route_group import RouteGroup
from tocsin.cli.served import SERVED
from tocsin.core.settings import Settings

WITHIN_MS = 150_000
"""A slow machine is no failure."""


class Visit(Protocol):
    """Opens a browser window for a person with grants; options are those of Playwright's context."""

    async def __call__(self, *grants: str, **options: Any) -> Visitor: ...


@pytest.fixture(scope="session")
def chromium() -> str:
    program = find_chromium()
    if program is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(MISSING)
    return program


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        yield started
        await started.close()


@pytest.fixture
def groups(request: pytest.FixtureRequest) -> Sequence[RouteGroup]:
    """What is served: the console and the API, or the parameter of the test."""
    chosen: Sequence[RouteGroup] = getattr(request, "param", SERVED)
    return chosen


@pytest.fixture
async def api(settings: Settings, groups: Sequence[RouteGroup]) -> AsyncIterator[RunningApi]:
    async with running_api(settings, groups) as started:
        yield started


@pytest.fixture
async def visit(api: RunningApi, browser: Browser) -> AsyncIterator[Visit]:
    """People, each with a window. Fails if a page of one of them had a problem."""
    visitors: list[Visitor] = []
    numbers = itertools.count(1)

    async def start(*grants: str, **options: Any) -> Visitor:
        context = await browser.new_context(locale="en-GB", timezone_id="Europe/Amsterdam", **options)
        context.set_default_timeout(WITHIN_MS)
        visitor = Visitor(api, context, await context.new_page(), f"person-{next(numbers)}")
        visitors.append(visitor)
        await visitor.watch()
        await visitor.log_in(*(grants or ("admin:*",)))
        return visitor

    yield start
    for visitor in visitors:
        await visitor.context.close()
    assert [problem for visitor in visitors for problem in visitor.problems] == []
