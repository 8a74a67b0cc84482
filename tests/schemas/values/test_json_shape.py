from datetime import UTC, datetime
from decimal import Decimal

import pytest

from schemas.values.json_shape import MAX_DEPTH, check_json_shape
from tocsin.core.errors import InvalidInput


def nested(depth: int) -> object:
    value: object = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def test_plain_json_is_accepted() -> None:
    check_json_shape(
        {"a": [None, True, 1, -(2**63), 2**63 - 1, 1.5, "ü𝄞", {"": {}}, []], "b c": "x\n\t"},
    )


def test_nesting_is_accepted_to_the_limit_and_refused_beyond() -> None:
    check_json_shape(nested(MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 9_000):
        with pytest.raises(InvalidInput, match="nested more than 64 deep"):
            check_json_shape(nested(depth))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": {"b": "x\0y"}}, "payload.a.b holds the character U+0000: leave out NUL and lone surrogates"),
        (
            {"a": ["x", "\ud800"]},
            "payload.a[1] holds the character U+D800: leave out NUL and lone surrogates",
        ),
        ({"a\0": 1}, "a key of payload holds the character U+0000: leave out NUL and lone surrogates"),
        ({"a": {1: 2}}, "payload.a has the key 1: keys must be text"),
        ({"a": 2**63}, "payload.a is an integer beyond 64 bits: send it as text"),
        ({"a": -(2**63) - 1}, "payload.a is an integer beyond 64 bits: send it as text"),
        ({"a": float("nan")}, "payload.a is nan, which is not JSON: send a finite number or null"),
        ({"a": float("-inf")}, "payload.a is -inf, which is not JSON: send a finite number or null"),
        ({"a": (1,)}, "payload.a is of type tuple, which is not JSON: send it as text"),
        ({"a": Decimal(1)}, "payload.a is of type Decimal, which is not JSON: send it as text"),
        (
            {"a": datetime(2026, 1, 1, tzinfo=UTC)},
            "payload.a is of type datetime, which is not JSON: send it as text",
        ),
        (b"x", "payload is of type bytes, which is not JSON: send it as text"),
    ],
)
def test_what_is_not_plain_json_is_refused_with_its_path(value: object, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_json_shape(value)
    assert str(refused.value) == message


def test_a_cyclic_value_is_rejected_instead_of_walked_forever() -> None:
    cyclic: list[object] = []
    cyclic.append(cyclic)
    with pytest.raises(InvalidInput, match="nested more than 64 deep"):
        check_json_shape(cyclic)
