"""Sessions: one-time links, cookies, and requests of other sites."""

from __future__ import annotations

import re

import pytest

from tests.api.recorded import put_alarm
from tests.api.running_api import HttpClient, RunningApi
from tests.sql import one_row
from tocsin.api.access.sessions import add_login_link
from tocsin.core.db import Connection
from tocsin.policy import AccessRole, Grant


async def link(connection: Connection) -> str:
    return await add_login_link(connection, "ann", [Grant(AccessRole.RESPONDER, "plant-*")], "test", "test")


async def log_in(api: RunningApi, connection: Connection) -> tuple[HttpClient, str]:
    """A client without a token, and its cookie."""
    browser = await api.with_token(None)
    answer = await browser.request("POST", "/login", data={"code": await link(connection)})
    assert (answer.status, answer.headers["location"]) == (303, "/")
    return browser, answer.headers["set-cookie"]


async def test_a_link_begins_one_session_of_its_person(api: RunningApi, connection: Connection) -> None:
    browser, code = await api.with_token(None), await link(connection)
    page = await browser.get(f"/login?code={code}")
    assert (page.status, code in page.text) == (200, True), "opening the link does not use it"
    answer = await browser.request("POST", "/login", data={"code": code})
    cookie = answer.headers["set-cookie"].partition(";")[0]
    me = await browser.get("/v1/me", headers={"cookie": cookie})
    assert (me.json["name"], me.json["credential"], me.json["grants"]) == (
        "ann",
        "session",
        ["responder:plant-*"],
    )
    again = await browser.request("POST", "/login", data={"code": code})
    assert (again.status, "works once" in again.problem["detail"]) == (409, True)
    row = await one_row(connection, "select who, verb from tocsin.audit where kind = 'session'")
    assert (row["who"], row["verb"]) == ("ann", "begin")


async def test_an_expired_link_and_a_wrong_code_begin_nothing(
    api: RunningApi, connection: Connection
) -> None:
    browser, code = await api.with_token(None), await link(connection)
    await connection.execute("update tocsin.api_login set expires_at = tocsin.instant() - interval '1s'")
    for wrong in (code, code[:-1] + "x", "", "x" * 3000):
        answer = await browser.request("POST", "/login", data={"code": wrong})
        assert (answer.status, "set-cookie" in answer.headers) == (409, False)


async def test_the_cookie_on_loopback_is_not_readable_by_pages(
    api: RunningApi, connection: Connection
) -> None:
    _, cookie = await log_in(api, connection)
    port = api.url.rpartition(":")[2]
    assert re.match(rf"tocsin-{port}=tocsin_session_\w+;", cookie)
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Domain" not in cookie


async def test_behind_a_proxy_that_ends_tls_the_cookie_is_bound_to_the_host(
    api: RunningApi, connection: Connection
) -> None:
    from starlette.requests import HTTPConnection

    from tocsin.api.access.sessions import cookie_form

    scope = {"type": "http", "scheme": "http", "server": ("h", 80), "path": "/", "headers": []}
    proxied = api.settings.model_copy(update={"api_plain": True})
    assert cookie_form(HTTPConnection(scope), proxied) == ("__Host-tocsin", True)
    assert cookie_form(HTTPConnection({**scope, "scheme": "https"}), api.settings) == ("__Host-tocsin", True)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "OWN"}, 200),
        ({"sec-fetch-site": "cross-site", "origin": "OWN"}, 403),
    ],
)
async def test_a_change_by_another_site_is_refused(
    api: RunningApi, connection: Connection, headers: dict[str, str], status: int
) -> None:
    alarm = await put_alarm(connection, "plant-7")
    browser, cookie = await log_in(api, connection)
    sent = {name: value.replace("OWN", api.url) for name, value in headers.items()}
    sent["cookie"] = cookie.partition(";")[0]
    assert (await browser.get("/v1/alarms", headers=sent)).status == 200, "reading is not a change"
    answer = await browser.post(f"/v1/alarms/{alarm}:ack", {}, headers=sent)
    assert answer.status == status
    if status == 403:
        assert answer.problem["type"] == "/docs/problems#cross-site"


async def test_a_logout_ends_the_session_everywhere(api: RunningApi, connection: Connection) -> None:
    browser, cookie = await log_in(api, connection)
    sent = {"cookie": cookie.partition(";")[0]}
    assert (
        await browser.request("POST", "/logout", headers={**sent, "sec-fetch-site": "cross-site"})
    ).status == 403
    assert (await browser.request("POST", "/logout", headers=sent)).status == 303
    assert (await browser.get("/v1/me", headers=sent)).status == 401


async def test_a_session_without_use_ends(api: RunningApi, connection: Connection) -> None:
    browser, cookie = await log_in(api, connection)
    await connection.execute(
        "update tocsin.api_session set last_used_at = last_used_at - interval '13 hours'"
    )
    answer = await browser.get("/v1/me", headers={"cookie": cookie.partition(";")[0]})
    assert (answer.status, answer.problem["detail"]) == (401, "the session has ended")
