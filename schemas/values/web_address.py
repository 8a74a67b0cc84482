"""Urls, hosts and ports in documents.

Guarantee: an accepted url is http or https and has a host, no credentials and no character that
could end a line. A url in a document has no token either. The egress guard checks its address when it is used.

On failure: `InvalidInput` that shows the host at most, since the path of a url may be a secret.
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from schemas.values.credential_text import url_has_credential
from schemas.values.pydantic_check import pydantic_check
from schemas.values.secret import REFERENCE_HINT, SecretRef, TextOrSecret
from tocsin.core.errors import InvalidInput

MAX_URL_LENGTH = 2_000
_UNWANTED = re.compile(r"[\s\x00-\x1f\x7f<>\"\\^`{|}]")
_HOST = re.compile(r"[^\s/?#@\[\]:\\]{1,253}")


def check_url(url: str) -> str:
    if len(url) > MAX_URL_LENGTH:
        raise InvalidInput(f"the url is longer than {MAX_URL_LENGTH} characters", remedy="shorten it")
    if _UNWANTED.search(url):
        raise InvalidInput("the url has a space or another character that must be written as %XX")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput("the url cannot be read", remedy="write https://host/path") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidInput("the url must start with https:// or http:// and a host")
    if "@" in parts.netloc:
        raise InvalidInput(
            f"the url of {host} has credentials in it",
            remedy="write them as a header, with a reference to a secret",
        )
    if port == 0:
        raise InvalidInput(f"the url of {host} has the port 0", remedy="write 1 to 65535")
    return url


def check_host(host: str) -> str:
    if not _HOST.fullmatch(host) and not re.fullmatch(r"[0-9A-Fa-f:.]{2,45}", host):
        raise InvalidInput(
            f"{host[:80]!r} is not a host", remedy="write a name or an address, without a port"
        )
    return host


def _check_text_or_secret(value: str | SecretRef) -> str | SecretRef:
    if not isinstance(value, str):
        return value
    check_url(value)
    if url_has_credential(value):
        raise InvalidInput(
            f"the url of {urlsplit(value).hostname} has a token in it, and is never written down",
            remedy=REFERENCE_HINT,
        )
    return value


Url = Annotated[TextOrSecret, AfterValidator(pydantic_check(_check_text_or_secret))]
"""A url, or a reference to one that is a secret."""

Host = Annotated[str, AfterValidator(pydantic_check(check_host))]
Port = Annotated[int, Field(ge=1, le=65_535)]
