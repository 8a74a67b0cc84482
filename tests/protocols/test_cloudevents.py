import base64
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.wire.ingest_event import read_ingest_event
from tocsin.core.errors import InvalidInput
from tocsin.protocols.cloudevents import BATCHED, MAX_CLOUDEVENTS, STRUCTURED, read_cloudevents

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "17",
    "source": "/orders",
    "type": "com.example.order.shipped",
    "subject": "plant-7",
    "time": "2026-03-02T08:00:00Z",
    "data": {"order": 17},
}


def structured(**keys: Any) -> dict[str, Any]:
    (event,), problems = read_cloudevents({"content-type": STRUCTURED}, json.dumps(EVENT | keys).encode())
    assert problems == []
    read_ingest_event(json.dumps(event).encode())
    return event


def test_a_structured_event_is_read() -> None:
    assert structured() == {
        "id": "cloudevent/7//orders/17",
        "type": "com-example-order-shipped",
        "owner": "plant-7",
        "payload": {"order": 17},
        "ts": "2026-03-02T08:00:00Z",
        "severity": None,
    }


def test_a_binary_event_is_the_same_as_a_structured_one() -> None:
    headers = {f"ce-{name}": value for name, value in EVENT.items() if name != "data"}
    (event,), _ = read_cloudevents(
        headers | {"content-type": "application/json; charset=utf-8"}, b'{"order": 17}'
    )
    assert event == structured()


@pytest.mark.parametrize(
    ("keys", "owner"),
    [({}, "plant-7"), ({"owner": "web-1"}, "web-1"), ({"subject": None}, "/orders")],
)
def test_the_owner_is_an_extension_or_the_subject_or_the_source(keys: dict[str, Any], owner: str) -> None:
    assert structured(**keys)["owner"] == owner


@pytest.mark.parametrize(
    ("keys", "payload"),
    [
        ({"data": [1, 2]}, {"data": [1, 2]}),
        ({"data": "text"}, {"data": "text"}),
        ({"data": None}, {}),
        ({"data_base64": base64.b64encode(b'{"a": 1}').decode()}, {"a": 1}),
        ({"data_base64": base64.b64encode(b"a").decode(), "datacontenttype": "text/plain"}, {"data": "a"}),
        ({"data_base64": "/w==", "datacontenttype": "application/octet-stream"}, {"data": "/w=="}),
    ],
)
def test_data_that_is_no_object_is_a_field(keys: dict[str, Any], payload: dict[str, Any]) -> None:
    assert structured(**keys)["payload"] == payload


def test_a_batch_is_read_event_by_event() -> None:
    batch = [EVENT, {"id": "18"}, 7, EVENT | {"id": "19", "specversion": "0.3"}]
    events, problems = read_cloudevents({"content-type": BATCHED}, json.dumps(batch).encode())
    assert len(events) == 1
    assert [problem[:3] for problem in problems] == ["[1]", "[2]", "[3]"]


def test_source_and_id_identify_an_event_together() -> None:
    keys = {structured(source=source, id=id)["id"] for source, id in [("a/b", "c"), ("a", "b/c"), ("a", "b")]}
    assert len(keys) == 3
    assert len(structured(id="x" * 500)["id"]) <= 256


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        ({}, b"{}", "no CloudEvent"),
        ({"content-type": STRUCTURED}, b"[]", "a JSON object"),
        ({"content-type": STRUCTURED}, b"{", "not JSON"),
        ({"content-type": STRUCTURED}, json.dumps(EVENT | {"id": ""}).encode(), "has no id"),
        ({"content-type": STRUCTURED}, json.dumps(EVENT | {"x": "y" * 2_000}).encode(), "too long"),
        ({"content-type": STRUCTURED}, json.dumps(EVENT | {"data_base64": "?"}).encode(), "not base64"),
        ({"content-type": BATCHED}, json.dumps([1] * (MAX_CLOUDEVENTS + 1)).encode(), "too long"),
        ({"ce-specversion": "1.0"}, b"", "has no id"),
    ],
)
def test_what_is_no_cloudevent_is_refused(headers: dict[str, str], body: bytes, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        read_cloudevents(headers, body)


TYPES = st.sampled_from(["", "application/json", STRUCTURED, BATCHED, "text/plain"])
HEADERS = st.dictionaries(
    st.sampled_from(["ce-id", "ce-source", "ce-type", "ce-specversion"]), st.text(max_size=5)
)


@given(
    HEADERS, TYPES, st.binary(max_size=100) | st.recursive(st.none() | st.text(), st.lists).map(json.dumps)
)
def test_no_request_makes_the_reader_fail(headers: dict[str, str], media: str, body: bytes | str) -> None:
    with suppress(InvalidInput):
        read_cloudevents(
            headers | {"content-type": media}, body if isinstance(body, bytes) else body.encode()
        )
