"""Secrets: resolved when they are needed, and redacted in every text afterwards.

Guarantee: a value lives as long as one delivery. Every text that leaves the delivery passes
`redact`, which hides every resolved value, also where it is quoted for a url, JSON or HTML, and the
parts of a url that are secret by themselves. The repr shows no value.

On failure: `InvalidInput` that names the reference, never a value.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from schemas.values.secret import SecretRef
from tocsin.core.errors import InvalidInput
from tocsin.core.redaction import Redactor

_MAX_BYTES = 65_536
_MIN_PART_LENGTH = 8
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class Secrets:
    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._redactor = Redactor()

    def __repr__(self) -> str:
        return "Secrets()"

    def reveal(self, value: SecretRef | str) -> str:
        """The value of a reference; a plain text is returned unchanged."""
        if isinstance(value, str):
            return value
        secret = self._read(value)
        if not secret:
            raise InvalidInput(f"the secret {value} is empty", remedy="set it for the worker")
        self._redactor.add({secret, *_parts_of_url(secret)})
        return secret

    def redact(self, text: str) -> str:
        """The text without secrets, and without characters that Postgres cannot store."""
        return _UNSTORABLE.sub("\ufffd", self._redactor.redact(text))

    def redact_json(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.redact(key): self.redact_json(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self.redact_json(member) for member in value]
        return self.redact(value) if isinstance(value, str) else value

    def _read(self, ref: SecretRef) -> str:
        if ref.env is not None:
            if ref.env not in self._environ:
                raise InvalidInput(f"the secret {ref} is not set", remedy="set the variable for the worker")
            return self._environ[ref.env]
        try:
            with Path(str(ref.file)).open("rb") as file:
                raw = file.read(_MAX_BYTES + 1)
        except OSError as error:
            reason = (error.strerror or "unknown").lower()
            raise InvalidInput(f"the secret {ref} cannot be read: {reason}") from None
        if len(raw) > _MAX_BYTES:
            raise InvalidInput(
                f"the secret {ref} is larger than {_MAX_BYTES} bytes",
                remedy="check that it is the right file",
            )
        try:
            return raw.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise InvalidInput(f"the secret {ref} is not text in UTF-8") from None


def _parts_of_url(secret: str) -> set[str]:
    """Parts of a url that an error may show. In apprise urls, the host may be a token."""
    try:
        parts = urlsplit(secret)
    except ValueError:
        return set()
    if not parts.scheme or not parts.netloc:
        return set()
    is_web = parts.scheme in ("http", "https")
    private = parts.netloc.rpartition("@")[0] if is_web else parts.netloc
    pieces = {*parts.path.split("/"), *re.split("[:@]", private), parts.path}
    pieces |= {pair.partition("=")[2] for pair in parts.query.split("&")}
    return {piece for piece in pieces if len(piece) >= _MIN_PART_LENGTH}
