"""An event of a producer is accepted whole, or rejected with a sentence."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from schemas.wire.ingest_event import MAX_BYTES, read_ingest_event
from tocsin.core.errors import InvalidInput

LEAST: dict[str, Any] = {"id": "order-17", "type": "order-shipped"}


def body(**more: Any) -> bytes:
    return json.dumps({**LEAST, **more}).encode()


def test_everything_but_key_and_type_may_be_left_out() -> None:
    event = read_ingest_event(body())
    assert (event.id, event.type, event.owner, event.payload) == ("order-17", "order-shipped", "", {})
    assert (event.ts, event.rank, event.correlation_id) == (None, None, None)


def test_everything_that_is_given_is_kept() -> None:
    correlation = uuid.uuid4()
    event = read_ingest_event(
        body(
            owner="plant 7",
            payload={"n": 1, "t": "é"},
            ts="2026-03-02T09:00:00+01:00",
            severity="high",
            correlation_id=str(correlation),
        )
    )
    assert (event.owner, event.payload, event.rank) == ("plant 7", {"n": 1, "t": "é"}, 4)
    assert (event.ts, event.correlation_id) == (datetime(2026, 3, 2, 8, tzinfo=UTC), correlation)


def test_the_same_key_is_always_the_same_event() -> None:
    one, other = read_ingest_event(body()), read_ingest_event(body(payload={"n": 1}))
    assert one.event_id == other.event_id == uuid.UUID("78a1aec3-d74c-53c3-b4ea-170745ac8ea6")
    assert read_ingest_event(body(id="order-18")).event_id != one.event_id


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "the event is not accepted"),
        (b"[]", "the body must be an object, not []"),
        (b"\xff", "the event is not accepted"),
        (b'{"id": "a", "type": "b", "payload": {"x": "\\u0000"}}', "U+0000"),
        (b'{"id": "a", "type": "b", "payload": {"x": "\\ud800"}}', "the body is not JSON ("),
        (b'{"id": "a", "type": "b", "payload": {"x": NaN}}', "not JSON: send a finite number"),
        (b'{"a":' * 40_000, "recursion limit"),
        (b" " * (MAX_BYTES + 1), "bytes: send at most 229376"),
        (body(payload=nested(70)), "nested more than 64 deep"),
        (body(payload={"n": 2**63}), "beyond 64 bits"),
        (body(payload=[]), "payload must be an object, not []"),
        (body(id=""), "id is too short: it needs at least 1"),
        (body(id="x" * 257), "id is too long: at most 256 are accepted"),
        (body(id="a\0b"), "cannot be stored"),
        (body(type="two words"), "type is 'two words': use letters, digits, '_' and '-'"),
        (body(type="a.b"), "type is 'a.b': use letters"),
        (body(owner="x" * 129), "owner is too long: at most 128 are accepted"),
        (body(owner="\0"), "cannot be stored"),
        (
            body(ts="2026-03-02T08:00:00"),
            "ts must be an instant with its offset, such as 2026-03-07T00:00Z, not",
        ),
        (body(ts=17), "ts must be an instant with its offset, such as 2026-03-07T00:00Z, not 17"),
        (body(ts="0001-01-01T00:00:00Z"), "is not plausible"),
        (body(severity="hihg"), "unknown severity 'hihg', did you mean 'high'?"),
        (body(correlation_id="x"), "correlation_id must be a UUID, such as"),
        (body(extra=1), "extra is an unknown key: remove it"),
        (b'{"type": "b"}', "id is missing: add it"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_wrong_event_is_rejected_with_its_reason(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_ingest_event(raw)
    assert said.lower() in str(refused.value).lower()
