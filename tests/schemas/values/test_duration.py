import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from schemas.values.duration import Duration, format_duration, parse_duration
from tocsin.core.errors import InvalidInput


class Waiting(BaseModel):
    wait: Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("5m500ms", 300.5),
        ("1w2d3h4m5s6ms", 788_645.006),
        ("0s", 0),
        ("PT10M", 600),
        ("PT90S", 90),
        ("P1DT12H", 129_600),
        ("P1W", 604_800),
        ("3660d", 3660 * 86400),
        ("007s", 7),
    ],
)
def test_a_duration_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("10", "no unit, write 10s"),
        (10, "10 is not a duration"),
        (1.5, "is not a duration"),
        (True, "True is not a duration"),
        (None, "None is not a duration"),
        ("", "write a number"),
        ("10:00", "minutes or hours"),
        ("-10m", "negative"),
        ("-PT10M", "negative"),
        ("1.5h", "fractions"),
        ("10 m", "spaces"),
        ("1mo", "months"),
        ("P1M", "months"),
        ("P1Y", "months"),
        ("30m1h", "in this order"),
        ("1h1h", "in this order"),
        ("10x", "units w, d, h"),
        ("P", "write a number"),
        ("PT", "write a number"),
        ("P1DT", "write a number"),
        ("h", "write a number"),
        ("١٠m", "write a number"),
        ("3661d", "longest is 3660d"),
        ("87840h1s", "longest is 3660d"),
        ("9" * 30 + "w", "longest is 3660d"),
        ("9" * 1_000_000 + "s", "too long"),
        (timedelta(days=-1), "negative"),
        (timedelta(days=4000), "longest"),
    ],
)
def test_anything_else_is_refused_with_a_hint(value: object, hint: str) -> None:
    with pytest.raises(InvalidInput, match=hint) as refused:
        parse_duration(value)
    assert len(str(refused.value)) < 300


@given(st.integers(min_value=0, max_value=3660 * 86_400_000))
def test_every_duration_survives_being_written(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(minutes=90), "1h30m"),
        (timedelta(0), "0s"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(days=8, seconds=1), "1w1d1s"),
    ],
)
def test_the_canonical_text_is_short(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@pytest.mark.parametrize("duration", [timedelta(microseconds=1), timedelta(seconds=-1)])
def test_what_cannot_be_written_is_refused(duration: timedelta) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        format_duration(duration)


def test_models_read_and_write_durations_as_text() -> None:
    waiting = Waiting.model_validate({"wait": "90m"})
    assert waiting.wait == timedelta(minutes=90)
    assert json.loads(waiting.model_dump_json()) == {"wait": "1h30m"}
    assert Waiting(wait=timedelta(seconds=5)).model_dump() == {"wait": "5s"}


@pytest.mark.parametrize("value", ["10", 10, True, None, "soon"])
def test_models_report_a_bad_duration_as_an_ordinary_error(value: Any) -> None:
    with pytest.raises(ValidationError, match="is not a duration"):
        Waiting.model_validate({"wait": value})


def test_the_schema_accepts_what_the_parser_accepts() -> None:
    validator = Draft202012Validator(Waiting.model_json_schema()["properties"]["wait"])
    for text in ("90s", "1h30m", "1w2d3h4m5s6ms", "PT10M", "P1DT12H"):
        assert validator.is_valid(text)
    for value in ("10", "10:00", 10, "soon", "1.5h"):
        assert not validator.is_valid(value)
