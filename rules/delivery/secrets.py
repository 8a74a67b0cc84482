"""Secrets of one delivery: resolved when they are needed, and redacted in every text afterwards.

Guarantee: a value lives as long as one delivery, and is revealed only for a host that may receive it
(`secret_store`). Every text that leaves the delivery passes `redact`, which hides every resolved
value in all of its spellings (`tocsin.core.redaction`), and the parts of a url that are secret by
themselves. The repr shows no value.

On failure: `InvalidInput` that names the reference, never a value.
"""

import re
from typing import Any
from urllib.parse import urlsplit

from rules.delivery.secret_store import SecretStore
from schemas.values.secret import SecretRef
from tocsin.core.alarm_link import hide_links
from tocsin.core.errors import InvalidInput
from tocsin.core.redaction import Redactor

_MIN_PART_LENGTH = 8
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class Secrets:
    def __init__(self, store: SecretStore, channel: str = "") -> None:
        self._store = store
        self._channel = channel
        self._redactor = Redactor()

    def __repr__(self) -> str:
        return "Secrets()"

    async def reveal_to(self, host: str, value: SecretRef | str) -> str:
        """The value of a reference, to be sent to `host`; a plain text is returned unchanged."""
        if isinstance(value, str):
            return value
        secret = await self._read(value)
        await self._store.check_use(value.secret, secret, host, self._channel)
        return secret

    async def reveal_url(self, value: SecretRef | str) -> str:
        """The value of a reference that is the address itself."""
        if isinstance(value, str):
            return value
        secret = await self._read(value)
        if "://" not in secret:
            raise InvalidInput(f"the secret {value.secret!r} is not a url")
        await self._store.check_use(value.secret, secret, host_of(secret), self._channel)
        return secret

    async def reveal_key(self, value: SecretRef) -> str:
        """The value of a reference that signs and is not sent."""
        return await self._read(value)

    async def _read(self, ref: SecretRef) -> str:
        secret = await self._store.read(ref.secret)
        self._redactor.add({secret, *_parts_of_url(secret)})
        return secret

    def redact(self, text: str) -> str:
        """The text without secrets, and without characters that Postgres cannot store."""
        return _UNSTORABLE.sub("\ufffd", hide_links(self._redactor.redact(text)))

    def redact_json(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.redact(key): self.redact_json(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self.redact_json(member) for member in value]
        return self.redact(value) if isinstance(value, str) else value


def host_of(url: str) -> str:
    """The host of an http url; '' if it has none, or is an apprise url, whose host can be a token."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "") if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""


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
