"""Bodies with a `Content-Encoding`: read up to a bound, whatever they would decompress to."""

from __future__ import annotations

import zlib

from tocsin.core.errors import InvalidInput


def decompress(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """The body without its encoding. `InvalidInput` if it is larger than `max_bytes`."""
    if encoding in ("", "identity"):
        plain = body
    elif encoding == "gzip":
        try:
            plain = zlib.decompressobj(wbits=31).decompress(body, max_bytes + 1)
        except zlib.error:
            raise InvalidInput("the body is not gzip, as its header says", remedy="compress it") from None
    else:
        raise InvalidInput(f"the encoding {encoding[:20]!r} is not known", remedy="use gzip or none")
    if len(plain) > max_bytes:
        raise InvalidInput(f"the body has more than {max_bytes} bytes", remedy="send less at once")
    return plain
