"""Of any message of a producer, correct datapoints are read and each wrong one has a sentence."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.export import text_of
from schemas.wire.datapoint import (
    MAX_BYTES,
    MAX_TEXT_LENGTH,
    DatapointMessage,
    TimestampBounds,
    check_datapoint,
    problem_summary,
    read_datapoints,
    series_of,
)
from schemas.wire.subjects import datapoint_subject
from tocsin.core.errors import InvalidInput

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
BOUNDS = TimestampBounds(timedelta(days=30), timedelta(minutes=5))


def read(body: Any, key: str = "temperature") -> tuple[list[tuple[Any, ...]], list[str]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    found, problems = read_datapoints(key, raw, T0, BOUNDS)
    return [tuple(one) for one in found], problems


def refusal(body: Any, key: str = "temperature") -> str:
    found, problems = read(body, key)
    assert found == []
    (problem,) = problems
    return problem


@pytest.mark.parametrize("value", [1, -1.5, 0, True, False, "open", "", 2**63 - 1, -(2**63), 1e300, 5e-324])
def test_a_value_is_taken_as_it_is(value: Any) -> None:
    ((_, _, found, ts, labels),), problems = read({"value": value})
    assert (found, type(found)) == (value, type(value))
    assert (ts, labels, problems) == (T0, {}, [])


def test_a_batch_names_keys_times_and_labels() -> None:
    batch = [
        {"value": 1},
        {"key": "a.b", "value": 2, "ts": "2026-03-02T07:59:59.5+00:00", "labels": {"zone": "north"}},
    ]
    assert read({"batch": batch}) == (
        [
            (0, "temperature", 1, T0, {}),
            (1, "a.b", 2, T0 - timedelta(seconds=0.5), {"zone": "north"}),
        ],
        [],
    )


def test_good_ones_of_a_batch_are_not_held_up_by_bad_ones() -> None:
    found, problems = read({"batch": [{"value": 1}, {"value": None}, 7, {"value": 2}, {"valu": 3}]})
    assert [(place, value) for place, _, value, _, _ in found] == [(0, 1), (3, 2)]
    assert problems == [
        "[1] the value is null: send a finite number, a text or a boolean",
        "[2] 7 is not a datapoint: send an object with a value",
        '[4] unknown key "valu": use key, labels, ts, value',
    ]
    assert problem_summary(problems, 5) == "3 of 5 datapoints were rejected: " + "; ".join(problems)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is not JSON"),
        (b"\xff\xfe", "the body is not JSON"),
        (b'{"value": "\xff"}', "the body is not JSON"),
        (b'{"value": "\\ud800"}', "the body is not JSON"),
        (b'{"value": NaN}', "the body is not JSON"),
        (b'{"value": -Infinity}', "the body is not JSON"),
        (b'{"value": 1e999}', "the value is Infinity: send a finite number"),
        (b'{"value": ' + b"9" * 5000 + b"}", "the body is not JSON"),
        (b'{"value": 9223372036854775808}', "beyond 64 bits: send it as a text"),
        (b'{"value": -9223372036854775809}', "beyond 64 bits"),
        (b'{"value": "a\\u0000b"}', "holds the character NUL"),
        (b"[" * 100_000, "recursion limit"),
        (b'{"value":' * 100_000, "recursion limit"),
        (b" " * 10_000_000, "the body has 10000000 bytes: send at most 1048576"),
        ([], "the body is not an object"),
        (7, "the body is not an object"),
        ({}, "the value is null"),
        ({"value": {}}, "the value is {}"),
        ({"value": [1]}, "the value is [1]"),
        ({"value": "x" * (MAX_TEXT_LENGTH + 1)}, "4097 characters: send at most 4096"),
        ({"value": 1, "timestamp": 2}, 'unknown key "timestamp": use labels, ts, value'),
        ({"value": 1, "key": "a"}, 'unknown key "key"'),
        ({"value": 1, "batch": []}, 'a body with "batch" holds a list and nothing else'),
        ({"batch": {}}, 'a body with "batch" holds a list'),
        ({"batch": []}, "the batch has 0 datapoints: send 1 to 10000"),
        ({"batch": [{"value": 1}] * 10_001}, "the batch has 10001 datapoints"),
        ({"batch": [{"value": 1, "key": None}]}, "key is null: send a text"),
        ({"batch": [{"value": 1, "key": ["a"]}]}, 'key is ["a"]: send a text'),
        ({"batch": [{"value": 1, "key": ""}]}, "no key: name it in the subject"),
        ({"batch": [{"value": 1, "key": "a b"}]}, "'a b' is not a key"),
        ({"batch": [{"value": 1, "key": "x" * 256}]}, "too long"),
        ({"value": 1, "ts": 1772438400}, "ts 1772438400 is not an instant: write 2026-03-02T08:00:00Z"),
        ({"value": 1, "ts": "2026-03-02T08:00:00"}, "is not an instant"),
        ({"value": 1, "ts": "2026-03-02"}, "is not an instant"),
        ({"value": 1, "ts": "yesterday"}, "is not an instant"),
        ({"value": 1, "ts": {}}, "is not an instant"),
        ({"value": 1, "ts": "2026-03-02T08:05:00.001Z"}, "lies more than 5m after its arrival"),
        ({"value": 1, "ts": "9999-12-31T23:59:59-23:59"}, "after its arrival"),
        (
            {"value": 1, "ts": "2026-01-31T07:59:59Z"},
            "more than 30 days before its arrival: it is outside of the retention",
        ),
        ({"value": 1, "ts": "0001-01-01T00:00:00+23:59"}, "it is outside of the retention"),
        ({"value": 1, "labels": []}, "labels is []: send an object of texts"),
        ({"value": 1, "labels": {"a": 1}}, 'the label "a" is 1: send a text'),
        ({"value": 1, "labels": {"a": "b" * 257}}, "too long"),
        ({"value": 1, "labels": {"a": "\0"}}, "holds the character NUL"),
        ({"value": 1, "labels": {str(n): "" for n in range(33)}}, "there are 33 labels"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_datapoint_is_reported_with_a_remedy(body: Any, said: str) -> None:
    assert said in refusal(body)


def test_a_producer_cannot_send_the_health_of_a_system() -> None:
    said = "'system.health' is reserved for the health of systems: send it under another key"
    assert refusal({"value": "ok"}, "system.health") == said
    found, problems = read({"batch": [{"key": "system.health", "value": "ok"}, {"value": 1}]})
    assert ([one[1] for one in found], problems) == (["temperature"], [f"[0] {said}"])
    assert series_of("cooling", "system.health").key == "system.health", "tocsin's own are read"
    with pytest.raises(InvalidInput, match=r"system\.health"):
        check_datapoint("cooling", {"key": "system.health", "value": "ok"})


def test_the_bounds_of_ts_are_inclusive() -> None:
    for text in ("2026-03-02T08:05:00Z", "2026-01-31T08:00:00Z"):
        assert read({"value": 1, "ts": text})[1] == []


def test_a_subject_without_a_key_needs_keys_in_the_body() -> None:
    assert "no key" in refusal({"value": 1}, key="")
    assert read({"batch": [{"key": "a", "value": 1}]}, key="")[1] == []


def test_a_long_list_of_problems_is_cut() -> None:
    problems = [f"[{number}] bad" for number in range(9)]
    assert problem_summary(problems, 20).endswith("[4] bad; and 4 more")
    assert problem_summary(["bad"], 1) == "bad"


letters = st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), exclude_characters=".*>{")


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
    st.lists(st.text(letters, min_size=1, max_size=8), min_size=1, max_size=4),
)
def test_a_subject_is_read_as_it_was_written(owner: str, parts: list[str]) -> None:
    key = ".".join(parts)
    subject = datapoint_subject("ns.v1", owner, key)
    _, _, _, owner_token, key_tokens = subject.split(".", 4)
    assert series_of(owner_token, key_tokens) == (owner, key)


@pytest.mark.parametrize(
    ("owner", "key"),
    [
        ("%41", "a"),
        ("a%2fb", "a"),
        ("a%2", "a"),
        ("%FF", "a"),
        ("%C0%80", "a"),
        ("a", "%61"),
        ("a", "b..c"),
        ("%00", "a"),
        ("x" * 129, "a"),
    ],
)
def test_another_spelling_of_an_owner_or_a_key_is_refused(owner: str, key: str) -> None:
    """It would be another partition, or another series, for the same text."""
    with pytest.raises(ValueError):
        series_of(owner, key)


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=1),
)
instants = st.one_of(
    st.none(),
    st.datetimes(datetime(2026, 2, 20), datetime(2026, 3, 2), timezones=st.just(UTC)).map(datetime.isoformat),
    st.sampled_from(["2026-03-01T00:00:00", "x", "", 5]),
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "value": values,
        "ts": instants,
        "labels": st.one_of(st.none(), st.dictionaries(st.text(max_size=3), values, max_size=2)),
        "key": st.sampled_from(["a", "a.b", "a b", "", None, 3]),
        "other": st.integers(),
    },
)


@given(st.one_of(entries, st.builds(lambda batch: {"batch": batch}, st.lists(entries, max_size=2))))
def test_the_reader_takes_what_the_exported_model_takes(body: dict[str, Any]) -> None:
    raw = json.dumps(body).encode()
    found, problems = read_datapoints("k", raw, T0, BOUNDS)
    storable = "\\u0000" not in json.dumps(body)
    try:
        DatapointMessage.model_validate_json(raw)
        accepted = True
    except ValidationError:
        accepted = False
    if storable:
        assert accepted is (problems == []), (body, problems)
    assert all(math.isfinite(one.value) for one in found if isinstance(one.value, float))


def test_the_exported_schema_takes_what_the_docs_show() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(text_of("datapoint")))
    validator.validate({"value": 66.5, "ts": "2026-03-02T08:00:00Z", "labels": {"zone": "north"}})
    validator.validate({"batch": [{"key": "a.b", "value": "open"}, {"key": "c", "value": True}]})
    assert not validator.is_valid({"batch": []})
    assert not validator.is_valid({"value": None})


def test_a_producer_gets_the_error_before_it_sends() -> None:
    check_datapoint("plant", {"key": "a", "value": 1, "labels": {"b": "c"}})
    for owner, fields in (
        ("x" * 129, {"key": "a", "value": 1}),
        ("a\0", {"key": "a", "value": 1}),
        ("a", {"key": "a b", "value": 1}),
        ("a", {"key": "a", "value": math.nan}),
        ("a", {"key": "a", "value": None}),
        ("a", {"key": "a", "value": 1, "labels": {"b": 1}}),
    ):
        with pytest.raises(InvalidInput):
            check_datapoint(owner, fields)


def test_the_largest_body_is_still_read() -> None:
    filler = "x" * 4_000
    batch = [{"value": filler}] * (MAX_BYTES // 4_100)
    assert len(read({"batch": batch})[0]) == len(batch)
