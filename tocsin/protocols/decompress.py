"""Bodies with a `Content-Encoding`: read up to a bound, whatever they would decompress to."""

from __future__ import annotations

import zlib

from tocsin.core.errors import InvalidInput


def decompress(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """The body without its encoding. `InvalidInput` if it is larger than `max_bytes`."""
    if encoding in ("", "identity"):
        plain = body
    elif encoding == "gzip":
        plain = _gunzip(body, max_bytes + 1)
    else:
        raise InvalidInput(f"the encoding {encoding[:20]!r} is not known", remedy="use gzip or none")
    if len(plain) > max_bytes:
        raise InvalidInput(f"the body has more than {max_bytes} bytes", remedy="send less at once")
    return plain


def _gunzip(body: bytes, limit: int) -> bytes:
    """At most `limit` bytes. A stream that is cut short is refused: its rest would be lost."""
    reader = zlib.decompressobj(wbits=31)
    try:
        plain = reader.decompress(body, limit)
    except zlib.error:
        plain = None
    if plain is None or (len(plain) < limit and not reader.eof):
        raise InvalidInput("the body is not gzip, as its header says", remedy="compress it")
    return plain
