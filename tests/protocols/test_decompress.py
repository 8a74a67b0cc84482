import gzip

import pytest

from tocsin.core.errors import InvalidInput
from tocsin.protocols.decompress import decompress


def test_a_compressed_body_is_read_up_to_its_bound() -> None:
    assert decompress(gzip.compress(b"abc"), "gzip", 100) == b"abc"
    assert decompress(b"abc", "identity", 100) == b"abc"
    with pytest.raises(InvalidInput, match="more than"):
        decompress(gzip.compress(b"0" * (101)), "gzip", 100)
    with pytest.raises(InvalidInput, match="not gzip"):
        decompress(b"abc", "gzip", 100)
    for cut in (b"", b"x", gzip.compress(b"abc")[:-1], gzip.compress(b"abc" * 10)[:15]):
        with pytest.raises(InvalidInput, match="not gzip"):
            decompress(cut, "gzip", 100)
    with pytest.raises(InvalidInput, match="not known"):
        decompress(b"abc", "br", 100)
