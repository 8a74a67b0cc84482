"""The text of a secret that the API gives out: `tocsin_KIND_`, 160 random bits, a checksum.

The prefix makes a leaked secret recognisable to scanners. The checksum rejects a mistyped one, and
random requests, without a look into the database. Only the SHA-256 is stored: 160 random bits need no
slow hash.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BITS = 160
_SECRET_LENGTH = 27
_CHECKSUM_LENGTH = 6
_SHOWN = 4
_FORM = re.compile(
    rf"tocsin_(?P<kind>[a-z]{{2,10}})_(?P<secret>[0-9A-Za-z]{{{_SECRET_LENGTH}}})"
    rf"(?P<checksum>[0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})"
)
_SECRET = re.compile(r"(tocsin_[a-z]{2,10}_)[0-9A-Za-z]+")


def new_secret(kind: str) -> str:
    """A new secret, such as `tocsin_api_...`."""
    body = f"tocsin_{kind}_{_base62(secrets.randbits(_BITS), _SECRET_LENGTH)}"
    return body + _checksum(body)


def is_secret(text: str, kind: str) -> bool:
    """Whether a text has the form of a secret of this kind and the right checksum."""
    match = _FORM.fullmatch(text)
    return (
        match is not None
        and match["kind"] == kind
        and _checksum(text[:-_CHECKSUM_LENGTH]) == match["checksum"]
    )


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def hint_of(secret: str) -> str:
    """The beginning, to recognise a secret in a list."""
    match = _FORM.fullmatch(secret)
    assert match is not None
    return f"tocsin_{match['kind']}_{match['secret'][:_SHOWN]}..."


def hide_secrets(text: str) -> str:
    """The text, such as a path in a log, with the secret part of each secret left out."""
    return _SECRET.sub(r"\1...", text)


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
