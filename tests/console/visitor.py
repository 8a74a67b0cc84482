"""A caller of the console in tests: pages as elements, forms that are sent, and what the next page says."""

from __future__ import annotations

from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

from tests.api.running_api import HttpAnswer, HttpClient, RunningApi
from tests.console.html import Element, read_html
from tocsin.api.access.sessions import add_login_link
from tocsin.core.db import Connection
from tocsin.policy import AccessRole, Grant


@dataclass
class Shown:
    answer: HttpAnswer
    page: Element

    @property
    def status(self) -> int:
        return self.answer.status

    @property
    def text(self) -> str:
        return self.page.one("main").text

    @property
    def rows(self) -> list[str]:
        """The texts of the rows of its tables."""
        return [row.text for body in self.page.all("tbody") for row in body.all("tr")]


class Visitor:
    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self._cookies: dict[str, str] = {}

    async def open(self, path: str) -> Shown:
        answer = await self.client.get(path, headers=self._headers())
        self._keep(answer)
        return Shown(answer, read_html(answer.text))

    async def send(
        self, path: str, fields: dict[str, Any] | None = None, *, site: str = "same-origin"
    ) -> HttpAnswer:
        """Send a form, from a page of `site`; the answer of an act is a redirect."""
        pairs = [
            (name, str(value))
            for name, values in (fields or {}).items()
            for value in (values if isinstance(values, list) else [values])
        ]
        answer = await self.client.request(
            "POST", path, data=pairs, headers=self._headers() | _FORM | {"sec-fetch-site": site}
        )
        self._keep(answer)
        return answer

    async def act(self, path: str, fields: dict[str, Any] | None = None) -> Shown:
        """Send a form, and open the page that it leads to."""
        answer = await self.send(path, fields)
        assert answer.status == 303, answer
        return await self.open(answer.headers["location"])

    def _headers(self) -> dict[str, str]:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items() if value)
        return {"cookie": cookies} if cookies else {}

    def _keep(self, answer: HttpAnswer) -> None:
        for text in answer.headers.getall("set-cookie", []):
            for name, morsel in SimpleCookie(text).items():
                self._cookies[name] = "" if morsel["max-age"] == "0" else morsel.value


_FORM = {"content-type": "application/x-www-form-urlencoded"}


async def log_in(console: RunningApi, connection: Connection) -> Visitor:
    """An admin with the cookie of a session, as in a browser."""
    code = await add_login_link(connection, "ann", [Grant(AccessRole.ADMIN, "*")], "test", "test")
    person = Visitor(await console.with_token(None))
    answer = await person.send("/login", {"code": code})
    assert (answer.status, answer.headers["location"]) == (303, "/")
    return person


async def visitor(console: RunningApi, *grants: str, name: str | None = None) -> Visitor:
    return Visitor(await console.client(*grants, name=name))
