"""Laws of every page: statements, headers, no inline code, and text of others stays text."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.api.recorded import Recorded, put_alarm, record
from tests.api.running_api import RunningApi
from tests.console.html import Element
from tests.console.screens import PAGES, path_of
from tests.console.visitor import log_in, visitor
from tocsin.core.db import Connection

MOST_STATEMENTS = 30
XSS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "javascript:alert(1)",
    "</textarea></title><svg onload=alert(1)>",
    "{{ 7 * 7 }}",
    "<a hx-on:click=alert(1)>x</a>",
    "\u202eabc",
)
"""Texts that a page could run or interpret."""


@asynccontextmanager
async def counted(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[bytes]]:
    """The statements that this process sends while the block runs."""
    sent: list[bytes] = []
    real = psycopg.AsyncCursor.execute

    async def execute(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        sent.append(query)
        return await real(self, query, *arguments, **options)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", execute)
    yield sent
    monkeypatch.undo()


@pytest.mark.parametrize("route", PAGES)
async def test_a_page_costs_at_most_thirty_statements(
    console: RunningApi, connection: Connection, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    of = await record(console, connection, "plant-7")
    for number in range(40):
        await put_alarm(connection, f"plant-{number}")
    ann = await visitor(console, "admin:*")
    await ann.open(path_of(route, of))  # caches are warm, as on a running instance
    async with counted(monkeypatch) as sent:
        shown = await ann.open(path_of(route, of))
    assert shown.status == 200, shown.answer
    assert 0 < len(sent) <= MOST_STATEMENTS, [query[:60] for query in sent]


@pytest.mark.parametrize("route", PAGES)
async def test_a_page_has_no_inline_code_and_forbids_it(
    console: RunningApi, connection: Connection, route: str
) -> None:
    of = await record(console, connection, "plant-7")
    shown = await (await visitor(console, "admin:*")).open(path_of(route, of))
    assert shown.status == 200, shown.answer
    refuse_inline_code(shown.page)
    policy = shown.answer.headers["content-security-policy"]
    for part in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"):
        assert part in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    assert shown.answer.headers["cache-control"] == "no-store"
    assert shown.answer.headers["x-content-type-options"] == "nosniff"
    nonce = re.search(r"'nonce-([^']+)'", policy)
    assert nonce is not None
    again = await (await visitor(console, "admin:*")).open(path_of(route, of))
    assert nonce[1] not in again.answer.text, "a nonce is used once"


def refuse_inline_code(page: Element) -> None:
    for element in page.all():
        assert element.tag != "style", element
        assert element.tag != "script" or element.attributes.get("src", "").startswith("/static/"), element
        for name, value in element.attributes.items():
            assert name != "style", element.attributes
            assert not name.startswith(("on", "hx-on", "hx-vals", "hx-vars")), element.attributes
            assert not value.strip().lower().startswith(("javascript:", "data:text", "js:")), (
                element.attributes
            )
            if name in ("src", "href", "action", "formaction") and not value.startswith(("/", "#")):
                assert value.startswith(("https://", "http://")), (name, value)
                assert element.tag == "a", "only a link that a person follows leads to another host"


def test_templates_have_no_inline_code() -> None:
    folder = files("tocsin.console") / "templates"
    texts = {str(path): path.read_text() for path in _files(folder) if path.name.endswith(".html")}
    assert texts
    for path, text in texts.items():
        assert not re.search(r"\s(style|on[a-z]+|hx-on[^=]*|hx-vals)\s*=", text), path
        assert "|safe" not in text.replace(" ", ""), path
        assert not re.search(r"<script(?![^>]*src=)", text), path


def _files(folder: Any) -> list[Any]:
    return [found for entry in folder.iterdir() for found in (_files(entry) if entry.is_dir() else [entry])]


@pytest.mark.parametrize("text", XSS)
async def test_texts_of_others_are_shown_as_texts(
    console: RunningApi, connection: Connection, text: str
) -> None:
    of = await record_with(console, connection, text)
    ann = await visitor(console, "admin:*")
    for route in PAGES:
        shown = await ann.open(path_of(route, of))
        assert shown.status == 200, (route, shown.answer)
        refuse_inline_code(shown.page)
        assert "<script>alert" not in shown.answer.text, route
        assert "<img src=x" not in shown.answer.text, route
        assert "49" not in re.findall(r">\s*(49)\s*<", shown.answer.text), route
    alarm = await ann.open(f"/alarms/{of.alarm}")
    assert " ".join(text.replace("\u202e", "\\u202e").split()) in alarm.page.one("h1").text


async def record_with(console: RunningApi, connection: Connection, text: str) -> Recorded:
    """Rows of an owner, with the text wherever others can put one."""
    of = await record(console, connection, "plant-7")
    payload = {
        "message": text,
        "title": text,
        "description": text,
        "runbook_url": text,
        "labels": {text: text},
        "value": text,
    }
    await connection.execute(
        "update tocsin.alarm set payload = %(payload)s, owner = %(text)s, event_rule = %(text)s, instance = %(text)s,"
        " acknowledged_at = tocsin.instant(), acknowledged_by = %(text)s, acknowledged_note = %(text)s",
        {"payload": Jsonb(payload), "text": text},
    )
    await connection.execute(
        "update tocsin.action set owner = %(text)s, error = %(text)s, name = %(text)s", {"text": text}
    )
    await connection.execute(
        "update tocsin.schedule set title = %(text)s, description = %(text)s", {"text": text}
    )
    await connection.execute(
        "update tocsin.current_value set owner = %(text)s, value = to_jsonb(%(text)s::text),"
        " labels = jsonb_build_object(%(text)s::text, %(text)s::text)",
        {"text": text},
    )
    return of


async def test_a_file_is_kept_by_its_content_and_asked_for_again_otherwise(console: RunningApi) -> None:
    stranger = await console.with_token(None)
    page = await stranger.get("/")
    found = re.search(r'href="(/static/css/[^"]+)"', page.text)
    assert found is not None
    style = await stranger.get(found[1])
    assert (style.status, "immutable" in style.headers["cache-control"]) == (200, True)
    plain = await stranger.get(found[1].partition("?")[0])
    assert plain.headers["cache-control"] == "no-cache"
    same = await stranger.get(found[1].partition("?")[0], headers={"if-none-match": plain.headers["etag"]})
    assert (same.status, same.body) == (304, b"")


@pytest.mark.parametrize("path", ["../__init__.py", "%2e%2e/__init__.py", "css/../../page.py", "vendor/", ""])
async def test_only_files_of_the_package_are_served(console: RunningApi, path: str) -> None:
    stranger = await console.with_token(None)
    assert (await stranger.get(f"/static/{path}")).status == 404


async def test_the_theme_and_the_zone_are_kept_and_shown(console: RunningApi, connection: Connection) -> None:
    await put_alarm(connection, "plant-7")
    person = await log_in(console, connection)
    shown = await person.act("/preferences", {"theme": "dark", "zone": "Asia/Tokyo", "back": "/alarms"})
    assert shown.page.one("html").attributes["data-theme"] == "dark"
    assert "JST" in (await person.open("/")).text
    for wrong in ({"theme": "pink", "zone": "UTC"}, {"theme": "dark", "zone": "Mars/Olympus"}):
        assert (await person.send("/preferences", wrong)).status == 422
    for back in ("//evil.example", "https://evil.example", "/\\evil.example"):
        answer = await person.send("/preferences", {"theme": "auto", "zone": "UTC", "back": back})
        assert answer.headers["location"] == "/"
