"""Keys of NATS users: Ed25519, in the text form of NATS ("nkeys"), and creds files.

A seed is base32 of two prefix bytes, 32 bytes and a CRC. The server sends a nonce, and the client
signs it, so the key itself is never sent. A creds file also has the JWT of the user.

On failure: `NkeyInvalid`, which never contains a part of the text. Signing needs the extra `nkeys`.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field

from tocsin.core.errors import Refused
from tocsin.core.extras import install_remedy

_SEED_PREFIX = 18 << 3
_USER_PREFIX = 20 << 3
_SEED_BYTES = 32
_BLOCK = re.compile(r"-+BEGIN ([A-Z ]+?)-+\s*(\S+?)\s*-+END \1-+")


class NkeyInvalid(Exception):
    """The text is no seed of a user, or no creds file."""


@dataclass(frozen=True, slots=True)
class UserKey:
    seed: bytes = field(repr=False)

    @classmethod
    def of_seed(cls, text: str) -> UserKey:
        try:
            raw = base64.b32decode(text + "=" * (-len(text) % 8))
        except (binascii.Error, ValueError):
            raise NkeyInvalid("it is not base32") from None
        if len(raw) != _SEED_BYTES + 4 or _crc16(raw[:-2]) != int.from_bytes(raw[-2:], "little"):
            raise NkeyInvalid("it is incomplete or changed")
        kind = (raw[0] & 0b111) << 5 | raw[1] >> 3
        if raw[0] & 0b11111000 != _SEED_PREFIX or kind != _USER_PREFIX:
            raise NkeyInvalid("it is not the seed of a user")
        return cls(raw[2:-2])

    @property
    def public(self) -> str:
        """The name of the key, which begins with U."""
        raw = bytes([_USER_PREFIX]) + self._private().public_key().public_bytes_raw()
        return base64.b32encode(raw + _crc16(raw).to_bytes(2, "little")).decode().rstrip("=")

    def sign(self, nonce: str) -> bytes:
        """The signature as NATS expects it: base64."""
        return base64.b64encode(self._private().sign(nonce.encode()))

    def _private(self) -> Ed25519PrivateKey:  # type: ignore[name-defined] # noqa: F821 an extra
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        except ImportError:
            raise Refused(
                "a NATS key needs the python package 'cryptography'", remedy=install_remedy("nkeys")
            ) from None
        return Ed25519PrivateKey.from_private_bytes(self.seed)


def read_creds(text: str) -> tuple[str, UserKey]:
    """The JWT and the key of a creds file."""
    blocks = dict(_BLOCK.findall(text))
    if "NATS USER JWT" not in blocks or "USER NKEY SEED" not in blocks:
        raise NkeyInvalid("it has no user JWT or no user key")
    return blocks["NATS USER JWT"], UserKey.of_seed(blocks["USER NKEY SEED"])


def _crc16(data: bytes) -> int:
    return binascii.crc_hqx(data, 0)
