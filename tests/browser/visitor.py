"""A person with a browser: one logged-in page, and everything that a correct page must not do.

Guarantee: `Visitor.problems` has each error on the console, each uncaught exception, each violation of the
content security policy, each answer with a status of 500 or more, and each request to another host. The
fixture `visit` fails a test that leaves one unread.

async def test_x(visit: Visit) -> None:
    ann = await visit("viewer:plant-*")
    await ann.open("/alarms")
    await ann.expect_accessible()
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request, Response

from tests.api.running_api import RunningApi
from tests.paths import ROOT
from tocsin.api.access.grant_text import parse_grant
from tocsin.api.access.sessions import add_login_link
from tocsin.core.db import open_session

AXE = ROOT / "tests" / "browser" / "vendor" / "axe.js"
_REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => {
  window.reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
});
"""
# Of the page with everything that the standards of WCAG 2.2 AA ask for.
_RUN_AXE = """async () => {
  const result = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"] });
  return result.violations.map((one) => ({
    rule: one.id, help: one.help, where: one.nodes.map((node) => node.target.join(" ")).slice(0, 5),
    why: one.nodes[0].failureSummary,
  }));
}"""


class Visitor:
    """`page` is Playwright's page; `name` the principal that is logged in."""

    def __init__(self, api: RunningApi, context: BrowserContext, page: Page, name: str) -> None:
        self.api = api
        self.context = context
        self.page = page
        self.name = name
        self.problems: list[str] = []

    async def watch(self) -> None:
        """Collect the problems of all pages of this person."""
        await self.context.expose_function("reportViolation", self._add_violation)
        await self.context.add_init_script(_REPORT_VIOLATIONS)
        self.context.on("console", self._add_message)
        self.context.on("weberror", lambda error: self.problems.append(f"exception: {error.error}"))
        self.context.on("request", self._add_request)
        self.context.on("response", self._add_response)

    async def log_in(self, *grants: str) -> None:
        async with open_session(self.api.settings, "test") as connection:
            parsed = [parse_grant(grant) for grant in grants]
            code = await add_login_link(connection, self.name, parsed, "test", "test")
        await self.page.goto(f"{self.api.url}/login?code={code}")
        await self.page.get_by_role("button", name="Log in").click()
        await self.page.wait_for_url(lambda url: "/login" not in url)

    async def open(self, path: str) -> None:
        await self.page.goto(self.api.url + path)

    async def find_inaccessible(self) -> list[dict[str, Any]]:
        """What axe-core finds on the present page."""
        await self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: list[dict[str, Any]] = await self.page.evaluate(_RUN_AXE)
        return found

    async def expect_accessible(self) -> None:
        assert await self.find_inaccessible() == []

    def take_problems(self) -> list[str]:
        """The problems until now, which the test expected."""
        taken, self.problems = self.problems, []
        return taken

    def _add_violation(self, text: str) -> None:
        self.problems.append(f"policy: {text}")

    def _add_message(self, message: ConsoleMessage) -> None:
        url = message.location.get("url", "")
        # Chromium asks for an icon where a page names none, as that of the login.
        if message.type == "error" and not url.endswith("/favicon.ico"):
            self.problems.append(f"console: {message.text} ({url})")

    def _add_request(self, request: Request) -> None:
        if urlsplit(request.url).scheme in ("http", "https") and not request.url.startswith(self.api.url):
            self.problems.append(f"request to another host: {request.url}")

    def _add_response(self, response: Response) -> None:
        if response.status >= 500:
            self.problems.append(f"status {response.status}: {response.url}")
