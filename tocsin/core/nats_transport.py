"""Protection of connections to NATS: TLS, and the credentials that they send.

Guarantee: credentials and messages cross no network in clear text, unless TOCSIN_ALLOW_CLEAR_TEXT
says so. Loopback is no network. A `tls://` address, or any TLS setting, requires TLS everywhere.
Certificates are always verified, with the authorities of the system or with TOCSIN_NATS_CA.

Files of credentials are read at every connect, so that they can be replaced while services run.

On failure: `WrongAddress` names the setting, the file and the reason, and never its content.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tocsin.core.errors import WrongAddress
from tocsin.core.loopback import is_loopback
from tocsin.core.nkey import NkeyInvalid, UserKey, read_creds
from tocsin.core.settings import Settings


def requires_tls(settings: Settings, urls: list[str]) -> bool:
    return any(url.startswith("tls://") for url in urls) or bool(
        settings.nats_ca or settings.nats_cert or settings.nats_key
    )


def clear_text_rule(settings: Settings, urls: list[str]) -> Callable[[str], bool]:
    """Whether a host may be reached without TLS."""
    if requires_tls(settings, urls):
        return lambda _: False
    return lambda host: settings.allow_clear_text or is_loopback(host)


def tls_context(settings: Settings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.nats_ca or None)
    except (OSError, ssl.SSLError) as error:
        raise _unusable("TOCSIN_NATS_CA", settings.nats_ca, error, "a PEM file of authorities") from None
    if bool(settings.nats_cert) != bool(settings.nats_key):
        raise WrongAddress(
            "a client certificate needs both TOCSIN_NATS_CERT and TOCSIN_NATS_KEY", remedy="set both, or none"
        )
    if settings.nats_cert:
        try:
            context.load_cert_chain(settings.nats_cert, settings.nats_key)
        except (OSError, ssl.SSLError) as error:
            what = "PEM files of a certificate and its key"
            raise _unusable("TOCSIN_NATS_CERT and TOCSIN_NATS_KEY", settings.nats_cert, error, what) from None
    return context


def credentials(settings: Settings, urls: list[str]) -> dict[str, Any]:
    """The options of nats-py that authenticate us."""
    if settings.nats_creds and settings.nats_nkey:
        raise WrongAddress(
            "TOCSIN_NATS_CREDS and TOCSIN_NATS_NKEY are both set",
            remedy="a creds file has its own key: set one",
        )
    if settings.nats_creds:
        return _creds_options(settings.nats_creds)
    if settings.nats_nkey:
        key = _key(settings.nats_nkey)
        return {"signature_cb": lambda nonce: _key(settings.nats_nkey).sign(nonce), "public_nkey": key.public}
    if settings.nats_user:
        return {"user": settings.nats_user, "password": settings.nats_password}
    return _of_urls(urls)


def _of_urls(urls: list[str]) -> dict[str, Any]:
    """User and password of the first URL that has them, decoded.

    nats-py would send them as they are written, and would send none to a server that another server
    announced.
    """
    for url in urls:
        parts = urlsplit(url)
        if parts.username is not None and parts.password is not None:
            return {"user": unquote(parts.username), "password": unquote(parts.password)}
    return {}


def _creds_options(path: str) -> dict[str, Any]:
    _creds(path)
    return {
        "user_jwt_cb": lambda: bytearray(_creds(path)[0].encode()),
        "signature_cb": lambda nonce: _creds(path)[1].sign(nonce),
    }


def _creds(path: str) -> tuple[str, UserKey]:
    try:
        return read_creds(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError, NkeyInvalid) as error:
        raise _unusable("TOCSIN_NATS_CREDS", path, error, "a creds file, as `nsc` writes it") from None


def _key(path: str) -> UserKey:
    try:
        return UserKey.of_seed(Path(path).read_text(encoding="ascii").strip())
    except (OSError, ValueError, NkeyInvalid) as error:
        raise _unusable(
            "TOCSIN_NATS_NKEY", path, error, "a file with the seed of a user key (SU...)"
        ) from None


def _unusable(setting: str, path: str, error: Exception, what: str) -> WrongAddress:
    # A decoding error repeats the bytes it could not read.
    secret = isinstance(error, ValueError) and not isinstance(error, NkeyInvalid)
    reason = "it is not ASCII text" if secret else getattr(error, "strerror", None) or str(error)
    return WrongAddress(f"{setting}={path!r} cannot be used ({reason})", remedy=f"give {what}")
