"""Hides secrets in texts: logs, errors, outcomes of deliveries.

Guarantee: `redact` hides each given secret in every spelling that libraries and servers use: plain,
in any case, quoted for a url, JSON, HTML or Python, in hex, and inside of base64, as in an echoed
`AUTH PLAIN`. The beginning of a secret at the end of a text that was cut is hidden as well.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from functools import cached_property
from urllib.parse import quote, quote_plus

HIDDEN = "***"
# A shorter part of a base64 text would match by chance.
_MIN_BASE64_LENGTH = 6
# Shorter words, such as a part of the path of a url, would match the end of an ordinary sentence.
_MIN_CUT_SECRET_LENGTH = 12
_MIN_TAIL_LENGTH = 8
_MAX_TAIL_LENGTH = 512
_BASE64 = "[A-Za-z0-9+/_-]"


class Redactor:
    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = {secret for secret in secrets if secret}

    def __repr__(self) -> str:
        return "Redactor()"

    def add(self, secrets: Iterable[str]) -> None:
        self._secrets |= {secret for secret in secrets if secret}
        self.__dict__.pop("_pattern", None)

    def redact(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._without_cut_secret(self._pattern.sub(HIDDEN, text))

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        plain = sorted({form for secret in self._secrets for form in _plain_forms(secret)}, key=len)
        encoded = sorted({form for secret in self._secrets for form in _base64_forms(secret)}, key=len)
        choices = [re.escape(form) for form in reversed(plain)]
        choices += [f"{_BASE64}*{re.escape(form)}{_BASE64}*=*" for form in reversed(encoded)]
        return re.compile("|".join(choices), re.IGNORECASE) if choices else None

    def _without_cut_secret(self, text: str) -> str:
        body = text.removesuffix("...")
        ending = body[-_MAX_TAIL_LENGTH:].lower()
        for secret in self._secrets:
            if len(secret) < _MIN_CUT_SECRET_LENGTH:
                continue
            start = secret[:_MIN_TAIL_LENGTH].lower()
            at = ending.rfind(start)
            if at >= 0 and secret.lower().startswith(ending[at:]):
                return f"{body[: len(body) - len(ending) + at]}{HIDDEN}{text[len(body) :]}"
        return text


def _plain_forms(secret: str) -> set[str]:
    return {
        secret,
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        html.escape(secret),
        repr(secret)[1:-1],
        secret.encode(errors="replace").hex(),
    }


def _base64_forms(secret: str) -> set[str]:
    """The characters that the secret alone determines, at each of its three places in a group."""
    raw = secret.encode(errors="replace")
    forms = set()
    for before in range(3):
        first = (0, 2, 3)[before]
        dropped = (0, 3, 2)[(before + len(raw)) % 3]
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * before + raw).decode()
            forms.add(text[first : len(text) - dropped])
    return {form for form in forms if len(form) >= _MIN_BASE64_LENGTH}
