"""Selections become subjects that only the selected records have."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.stream import record_stream_config
from schemas.wire.subjects import event_subject
from tests.schemas.rows import event_row
from tocsin.client import (
    ActionStep,
    CalculatedDatapoints,
    Event,
    Events,
    InvalidInput,
    Records,
    Steps,
    Tombstones,
)
from tocsin.client.select import Unreadable
from tocsin.core.settings import Settings


@pytest.mark.parametrize(
    ("select", "subjects"),
    [
        (Events(), ["p.event.>"]),
        (Events(origin="scheduled"), ["p.event.scheduled.*.*.*"]),
        (Events(owner="plant 7"), ["p.event.*.*.*.plant%207"]),
        (Events(owner=""), ["p.event.*.*.*._"]),
        (Events(type="a", name=["x.y", "z", "x.y"]), ["p.event.*.a.x%2Ey.*", "p.event.*.a.z.*"]),
        (Steps(), ["p.action.>"]),
        (Steps(name="tell"), ["p.action.tell"]),
        (Tombstones(), ["p.tombstone.>"]),
        (CalculatedDatapoints(), ["p.staleness.>", "p.health.>", "p.calc.>"]),
        (
            CalculatedDatapoints(owner="plant 7"),
            ["p.staleness.plant%207.>", "p.health.plant%207.>", "p.calc.plant%207.>"],
        ),
        (Records(), ["p.event.>", "p.action.>", "p.staleness.>", "p.health.>", "p.calc.>", "p.tombstone.>"]),
    ],
)
def test_a_selection_becomes_a_list_of_subjects(select: Any, subjects: list[str]) -> None:
    assert select.subjects("p") == subjects


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(_texts, _texts, _texts, _texts)
def test_a_selected_owner_and_name_match_only_their_own_subject(
    owner: str, name: str, other_owner: str, other_name: str
) -> None:
    (pattern,) = Events(owner=owner, name=name).subjects("p")
    expression = re.compile(re.escape(pattern).replace(r"\*", r"[^.]+"))
    assert expression.fullmatch(event_subject("p", "caused", "t", name, owner))
    matches = bool(expression.fullmatch(event_subject("p", "caused", "t", other_name, other_owner)))
    assert matches == ((owner, name) == (other_owner, other_name))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"origin": "schedule"}, "origin 'schedule' does not exist: use one of caused, derived, external"),
        ({"origin": ["caused", "x"]}, "origin 'x' does not exist"),
        ({"type": []}, r"type=\[\] selects nothing"),
        ({"owner": 7}, "owner=7 is not a text"),
        ({"name": ["a", None]}, "name=None is not a text"),
    ],
)
def test_a_value_that_no_record_can_have_is_rejected(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Events(**parts)


def test_a_body_is_read_as_the_model_of_its_subject() -> None:
    row = event_row()
    event = Events().read(row.subject("p.v1"), row.body("tocsin/p"))
    assert isinstance(event, Event)
    assert (event.id, event.seq) == (row.id, row.seq)


@pytest.mark.parametrize(
    ("subject", "body", "message"),
    [
        ("p.v1.event.caused.t._._", b"", "the body is not a valid event: it is not JSON ("),
        (
            "p.v1.event.caused.t._._",
            b'{"specversion": "1.0"}',
            "the body is not a valid event: id is missing: add it",
        ),
        ("p.v1.action.x", b"[]", "the body is not a valid action"),
        ("p.v1.fresh.x", b"{}", "'p.v1.fresh.x' is not a subject of records that this version knows"),
    ],
)
def test_a_body_that_is_not_a_record_is_reported(subject: str, body: bytes, message: str) -> None:
    with pytest.raises(Unreadable, match=re.escape(message)):
        Records().read(subject, body)


def test_every_subject_of_the_stream_is_known() -> None:
    """Otherwise a consumer of `Records` would miss a kind of record, or make it a dead letter."""
    prefix = Settings().subjects
    assert sorted(record_stream_config(Settings()).subjects or []) == sorted(Records().subjects(prefix))


def test_a_body_may_have_fields_that_this_version_does_not_know() -> None:
    row = event_row()
    body = row.body("tocsin/p").replace(b'"specversion"', b'"later":1,"specversion"')
    assert Events().read(row.subject("p.v1"), body).id == row.id
    assert not isinstance(Events().read(row.subject("p.v1"), body), ActionStep)
