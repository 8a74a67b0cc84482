"""The tokens of a query select records; a wrong token is an error that names it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.live.records import live_record
from tocsin.api.live.query import MAX_LENGTH, MAX_TOKENS, parse_query
from tocsin.api.live.record import read_record
from tocsin.core.errors import InvalidInput

OPENED: dict[str, Any] = {
    "type": "alarm-opened",
    "owner": "plant 7",
    "rule": "too-hot",
    "origin": "derived",
    "severity": 3,
    "alarmid": "a1",
}


@pytest.mark.parametrize(
    ("query", "is_selected"),
    [
        ("", True),
        ("   ", True),
        ("type:alarm-opened", True),
        ("type:alarm-resolved", False),
        ("type:alarm-resolved,alarm-opened", True),
        ("type:alarm-*", True),
        ("type:alarm", False),
        ("-type:alarm-*", False),
        ("-type:schedule-*", True),
        ('owner:"plant 7"', True),
        ('owner:"plant "*', True),
        ("owner:plant", False),
        ("type:alarm-opened rule:too-cold", False),
        ("type:alarm-opened rule:too-hot origin:derived", True),
        ("alarm:a1", True),
        ("alarm:a2", False),
        ("schedule:daily", False),
        ("-schedule:daily", True),
        ("kind:event", True),
        ("kind:step,datapoint", False),
        ("severity:warning,average", True),
        ("severity:disaster", False),
        ("HOT", True),
        ("-hot", False),
        ('"plant 7" hot', True),
        ("elsewhere", False),
    ],
)
def test_a_query_selects_a_record_if_all_of_its_tokens_hold(query: str, is_selected: bool) -> None:
    assert parse_query(query).selects(live_record(1, **OPENED)) is is_selected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("onwer:x", "unknown field 'onwer' in the token 'onwer:x': did you mean 'owner'?"),
        ('owner:"x', "the query cannot be read at 'owner:\"x'"),
        ("kind:alarm", "unknown kind 'alarm'"),
        ("severity:huge", "unknown severity 'huge'"),
        ("owner:,", "has no value"),
        ("x" * (MAX_LENGTH + 1), f"the query has {MAX_LENGTH + 1} characters"),
        ("a " * (MAX_TOKENS + 1), f"the query has {MAX_TOKENS + 1} tokens"),
    ],
)
def test_a_query_that_cannot_be_read_is_rejected_with_its_token(query: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_query(query)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("subject", "body"), [("tocsin.v1.event.x", b"[]"), ("tocsin.v1.other.x", b"{}"), ("x", b"{}")]
)
def test_a_message_that_is_not_a_record_is_none(subject: str, body: bytes) -> None:
    assert read_record(1, subject, body) is None


def test_a_part_of_a_body_is_never_mistaken_for_a_field() -> None:
    attributes: dict[str, Any] = {"data": {"owner": "plant-9"}}
    assert not parse_query("owner:plant-9").selects(live_record(1, **attributes))
