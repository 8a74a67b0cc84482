"""One request of a person: who asks, with which access, now, in which zone, and the page that answers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.api.access.caller import Caller
from tocsin.api.access.permission import Access
from tocsin.api.pages import PageRequest
from tocsin.console.flash import Flash, flash_of, forget_flash, keep_flash
from tocsin.console.frame import Frame
from tocsin.console.preferences import Preferences
from tocsin.console.render import page_headers, render
from tocsin.core.db import Connection
from tocsin.core.errors import NotFound
from tocsin.policy import RULES, Operation, Scope, decide

ROWS = 100
"""Rows of a list on one page."""


@dataclass(frozen=True)
class Visit:
    request: Request
    access: Access
    """With the operation of the route, and the session of this request."""
    now: datetime
    preferences: Preferences
    frame: Frame
    nonce: str

    @property
    def connection(self) -> Connection:
        connection = self.access.lent
        assert connection is not None
        return connection

    @property
    def caller(self) -> Caller:
        return self.access.caller

    @property
    def tz(self) -> str:
        return self.preferences.tz

    @property
    def is_wall(self) -> bool:
        """Whether the page is shown on a wall: large, without controls."""
        return "wall" in self.request.query_params

    def can(self, operation: Operation, owner: str | None = None) -> bool:
        """Whether the caller may do something: for this owner, or for some owner if none is named."""
        if owner is not None and RULES[operation][1] is Scope.OWNER:
            return decide(self.caller.principal, operation, owner).allowed
        return bool(self.access.owners_of(operation))

    @property
    def sees_all(self) -> bool:
        """Whether the caller may view the alarms of every owner."""
        return "*" in self.access.owners_of(Operation.VIEW_ALARMS)

    def access_to(self, operation: Operation) -> Access:
        """The access of the same caller to another operation. Ask `can` before."""
        return replace(self.access, operation=operation)

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default).strip()[:2000]

    def path_id(self, noun: str) -> uuid.UUID:
        """The id in the path. `NotFound` if it is none."""
        text = self.request.path_params["id"]
        try:
            return uuid.UUID(text)
        except ValueError:
            raise NotFound(f"there is no {noun} {text[:40]!r}") from None

    def page_request(self, limit: int = ROWS) -> PageRequest:
        """The part of a list that this page shows, for the functions of the API."""
        return PageRequest(self.request, Response(), limit, self.query("cursor") or None)

    def url(self, **changes: str | None) -> str:
        """This page with other values in its query; None removes one, and so does another filter the cursor."""
        values = {name: value for name, value in self.request.query_params.items() if name != "cursor"}
        values |= {name: value for name, value in changes.items() if value is not None}
        kept = [
            (name, value) for name, value in values.items() if value and changes.get(name, "") is not None
        ]
        query = "&".join(f"{quote(name)}={quote(value)}" for name, value in kept)
        return f"{self.request.url.path}?{query}" if query else self.request.url.path

    def page(self, template: str, facts: Mapping[str, Any], *, status: int = 200) -> Response:
        flash = flash_of(self.request)
        text = render(
            template,
            {
                "visit": self,
                "frame": self.frame,
                "flash": flash,
                "url": self.url,
                "can": self.can,
                "Operation": Operation,
                "grants": grants_of(self.caller),
                **facts,
            },
        )
        response = HTMLResponse(text, status, page_headers(self.nonce))
        if flash is not None:
            forget_flash(response)
        return response

    def done(self, path: str, text: str, *, failed: list[str] | None = None, command: str = "") -> Response:
        """The answer to an act: a redirect to the page that shows what it did."""
        response = RedirectResponse(path, 303, headers={"cache-control": "no-store"})
        keep_flash(response, self.request, Flash(text, failed or [], command))
        return response


def grants_of(caller: Caller) -> str:
    """The grants of a caller in short: `admin`, or `viewer of plant-*`."""
    texts = [
        grant.role.value if grant.pattern == "*" else f"{grant.role} of {grant.pattern}"
        for grant in caller.principal.grants
    ]
    return ", ".join(dict.fromkeys(texts)) or "no grants"
