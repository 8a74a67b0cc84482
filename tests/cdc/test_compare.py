"""Messages that equal a record of the log, and the texts of the differences."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdc.compare import StoredMessage, difference, identity_text
from cdc.messages import RecordMessage

BODY: dict[str, Any] = {
    **{"specversion": "1.0", "id": "a", "source": "tocsin/x", "type": "noted", "seq": 7, "owner": "plant 7"},
    "data": {"n": 1},
}
EXPECTED = RecordMessage(7, "x.v1.event.caused.noted._.plant%207", json.dumps(BODY).encode())


def stored(body: object = BODY, subject: str = EXPECTED.subject) -> StoredMessage:
    return StoredMessage(7, subject, body if isinstance(body, bytes) else json.dumps(body).encode())


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in BODY.items() if name not in names}


TOMBSTONE = {
    **without("owner"),
    "type": "record-unsendable",
    "kind": "event",
    "data": {"reason": "too large"},
}


@pytest.mark.parametrize(
    "found",
    [
        stored(),
        stored(dict(reversed(BODY.items()))),
        # An earlier version of Tocsin did not send it yet.
        stored(without("owner")),
        stored(TOMBSTONE, "x.v1.tombstone.event"),
    ],
    ids=["the same bytes", "another order", "an older form", "a tombstone"],
)
def test_equal_messages_have_no_difference(found: StoredMessage) -> None:
    assert difference(EXPECTED, found) is None


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (None, "the stream has no message"),
        (stored(b""), "the log has a, the stream has a message that is not a record"),
        (stored(b"[1]"), "the log has a, the stream has a message that is not a record"),
        (stored({**BODY, "id": "b"}), "the log has a, the stream has b"),
        (stored({**TOMBSTONE, "id": "b"}), "the log has a, the stream has b"),
        (stored({**BODY, "seq": 8}), "the seq in the message is 8"),
        (stored(without("seq")), "the seq in the message is None"),
        (stored(subject="x.v1.event.caused.noted._._"), "the subject is 'x.v1.event.caused.noted._._', not "),
        (stored({**BODY, "data": {"n": 2}}), "the body differs in data"),
        (stored({**BODY, "more": 1}), "the body differs in more"),
        (stored(without("data", "source")), "the body differs in data, source"),
    ],
)
def test_different_messages_have_a_difference_that_names_the_cause(
    found: StoredMessage | None, what: str
) -> None:
    assert str(difference(EXPECTED, found)).startswith(what)


def test_a_message_without_a_record_and_a_seq_without_either_are_differences() -> None:
    assert difference(None, stored()) == "the log has no record, the stream has a"
    assert difference(None, None) == "neither the log nor the stream has it"


@pytest.mark.parametrize("body", [None, b"", b"no json", b"3", b'{"ID": 1}', b"\xff"])
def test_a_foreign_message_is_described_as_not_a_record(body: bytes | None) -> None:
    assert identity_text(body) == "a message that is not a record"
