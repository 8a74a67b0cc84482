"""Headers that authors add to requests.

Guarantee: a name is a token of HTTP and not a header that Tocsin or HTTP itself sets. A value has
no character that ends a line, so no value, literal or resolved, can add a header or a request. A
credential is a reference to a secret: documents are stored, exported and shown by `plan`.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.values.credential_text import is_credential_name, looks_like_credential
from schemas.values.pydantic_check import pydantic_check
from schemas.values.secret import REFERENCE_HINT, SecretRef, TextOrSecret
from tocsin.core.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]{0,8000}")
_RESERVED = frozenset(
    (
        *("host", "connection", "content-length", "content-type", "transfer-encoding", "te", "trailer"),
        *("upgrade", "expect", "keep-alive", "proxy-authorization", "proxy-connection", "idempotency-key"),
        *("webhook-id", "webhook-timestamp", "webhook-signature"),
    )
)


def check_header_value(name: str, value: str) -> str:
    """Check a value. The error names the header and never shows the value."""
    if not _VALUE.fullmatch(value):
        raise InvalidInput(
            f"the header '{name}' has a value that cannot be sent",
            remedy="use printable characters, no line breaks",
        )
    return value


def _check_headers(headers: dict[str, SecretRef | str]) -> dict[str, SecretRef | str]:
    seen: set[str] = set()
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name[:80]!r} is not the name of a header")
        if name.lower() in _RESERVED:
            raise ValueError(f"the header '{name}' is set by tocsin: leave it out")
        if name.lower() in seen:
            raise ValueError(f"the header '{name}' is given twice")
        seen.add(name.lower())
        if isinstance(value, str):
            check_header_value(name, value)
            if is_credential_name(name) or looks_like_credential(value):
                raise ValueError(
                    f"the header '{name}' is a credential and is never written down: {REFERENCE_HINT}"
                )
    return headers


# The limit stands before the validator: behind one, pydantic exports it as a limit of texts.
Headers = Annotated[
    dict[str, TextOrSecret], Field(max_length=50), AfterValidator(pydantic_check(_check_headers))
]
