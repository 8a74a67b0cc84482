"""Reads the fields of a form: url-encoded, bounded, each a text."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.requests import Request

from tocsin.api.limits import allow_body
from tocsin.core.errors import InvalidInput

_MAX_BYTES = 262_144
_MAX_FIELDS = 2_000
_TYPE = "application/x-www-form-urlencoded"


class Form:
    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        """The field without spaces around it; `default` if it is empty or missing.

        Lines end with `\\n`: browsers send `\\r\\n`.
        """
        return (self._fields.get(name) or [""])[0].replace("\r\n", "\n").strip() or default

    def texts(self, name: str) -> list[str]:
        return [text for text in self._fields.get(name, ()) if text]

    def number(self, name: str) -> int | None:
        text = self.text(name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise InvalidInput(f"{name} is {text[:40]!r}", remedy="write a whole number from 0")
        return int(text)


async def read_form(request: Request) -> Form:
    """The form of a request. `InvalidInput` if its body is not one."""
    allow_body(request, _MAX_BYTES)
    body = await request.body()
    if body and request.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
        raise InvalidInput("the body is not a form", remedy=f"send it as {_TYPE}")
    try:
        return Form(
            parse_qs(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
        )
    except ValueError:
        raise InvalidInput(
            "the form cannot be read", remedy="load the page again, and send it once more"
        ) from None
