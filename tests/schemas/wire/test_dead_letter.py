"""A dead letter shows the rejected message, of any bytes."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from schemas.wire.dead_letter import MAX_BODY_BYTES, dead_letter

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


def test_text_is_kept_as_text() -> None:
    letter = dead_letter("because", "a.b", T0, "é {}".encode())
    assert (letter.reason, letter.subject, letter.at) == ("because", "a.b", "2026-03-02T08:00:00Z")
    assert (letter.body, letter.encoding, letter.size) == ("é {}", "text", 5)


def test_other_bytes_are_base64() -> None:
    letter = dead_letter("because", "a.b", T0, b"\xff\x00")
    assert (base64.b64decode(letter.body), letter.encoding) == (b"\xff\x00", "base64")


def test_of_a_long_body_the_beginning_is_kept_even_if_the_cut_splits_a_character() -> None:
    letter = dead_letter("because", "a.b", T0, b"x" + "é".encode() * MAX_BODY_BYTES)
    assert (letter.encoding, letter.size) == ("text", 2 * MAX_BODY_BYTES + 1)
    assert letter.body == "x" + "é" * (MAX_BODY_BYTES // 2 - 1)


def test_half_a_character_at_the_end_of_a_short_body_is_no_text() -> None:
    assert dead_letter("because", "a.b", T0, "é".encode()[:1]).encoding == "base64"
