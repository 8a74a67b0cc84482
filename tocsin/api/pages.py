"""Pages of lists: at most 500 entries, and a cursor behind which the next page begins.

A cursor holds the sort key of the last entry (keyset), so a page costs the same at any depth and
entries that are added meanwhile move nothing. It is not signed: it only names a position, the values
are parameters of the statement, and the statement filters by owner itself.

There are no totals: counting a large table would cost more than the page.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text

MOST = 500
_DEFAULT = 100
_LONGEST_CURSOR = 1000
Row = Mapping[str, Any]
Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    """Entries of a list, and the cursor of the next page if there is one."""

    items: list[Item]
    next_cursor: str | None = Field(default=None, description="Value of `cursor` for the next page.")


class PageRequest:
    """The dependency of handlers of lists."""

    def __init__(
        self,
        request: Request,
        response: Response,
        limit: Annotated[int, Query(ge=1, le=MOST, description="At most this many entries.")] = _DEFAULT,
        cursor: Annotated[
            str | None, Query(max_length=_LONGEST_CURSOR, description="`next_cursor` of the page before.")
        ] = None,
    ) -> None:
        self._request = request
        self._response = response
        self.limit = limit
        self.cursor = cursor

    def link_next(self, cursor: str) -> None:
        """Add `Link: <...>; rel="next"`, as a path of this host."""
        url = self._request.url.include_query_params(cursor=cursor)
        self._response.headers["link"] = f'<{url.path}?{url.query}>; rel="next"'


Paged = Annotated[PageRequest, Depends()]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Keyset:
    """The sort key of a list: its columns and how each is read from a cursor."""

    columns: Mapping[str, Callable[[str], Any]]

    def after(self, request: PageRequest) -> dict[str, Any]:
        """Parameters of the statement: `limit`, one more than asked, and `after_COLUMN`, None at first."""
        values = self._read(request.cursor)
        return {"limit": request.limit + 1, **{f"after_{name}": value for name, value in values.items()}}

    def page(self, request: PageRequest, rows: Sequence[Row], view: Callable[[Any], Item]) -> Page[Item]:
        """The page of rows that the statement returned."""
        shown = rows[: request.limit]
        cursor = self._write(shown[-1]) if len(rows) > request.limit else None
        if cursor is not None:
            request.link_next(cursor)
        return Page[Any](items=[view(row) for row in shown], next_cursor=cursor)

    def _write(self, row: Row) -> str:
        values = [_text(row[name]) for name in self.columns]
        return (
            base64.urlsafe_b64encode(json.dumps(values, separators=(",", ":")).encode()).decode().rstrip("=")
        )

    def _read(self, cursor: str | None) -> dict[str, Any]:
        if cursor is None:
            return dict.fromkeys(self.columns)
        try:
            values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
            if not isinstance(values, list) or len(values) != len(self.columns):
                raise ValueError
            return {
                name: read(_checked(value))
                for (name, read), value in zip(self.columns.items(), values, strict=True)
            }
        except (ValueError, binascii.Error, UnicodeDecodeError, OverflowError):
            raise InvalidInput(
                f"cursor {cursor[:40]!r} is not of this list", remedy="use `next_cursor` of the page before"
            ) from None


def _checked(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    return instant_text(value) if isinstance(value, datetime) else str(value)


def instant(text: str) -> datetime:
    """An instant in a cursor."""
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        raise ValueError
    return read


def optional_instant(text: str) -> datetime | None:
    """An instant in a cursor, or none."""
    return instant(text) if text else None


def big_integer(text: str) -> int:
    """A 64-bit number in a cursor, which Postgres can hold."""
    read = int(text)
    if not -(2**63) <= read < 2**63:
        raise ValueError
    return read


BY_ID = uuid.UUID
