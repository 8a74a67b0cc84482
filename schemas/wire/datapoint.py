"""Datapoints of producers: one, or a batch, as JSON on `datapoint.<owner>.<key...>`.

Guarantee: datapoints that `read_datapoints` returns can be stored, evaluated and shown: keys are
valid, values are finite numbers of at most 64 bits, short texts without NUL, or booleans, instants
are aware and within bounds, labels are few and short. For every other datapoint it returns a
sentence with the location and the remedy. A wrong datapoint of a batch does not affect the others.

Why without pydantic: this is the busiest path of Tocsin, and the errors of a union type are hard to
read. The models are for the exported schema; a test checks that both accept the same messages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from math import isfinite
from typing import Annotated, Any, NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel
from pydantic_core import from_json

from schemas.values.duration import format_duration
from schemas.values.key_pattern import Key, check_key
from schemas.values.names import MAX_OWNER_LENGTH
from schemas.wire.calculated import CALC_PREFIX, HEALTH_KEY
from schemas.wire.subjects import series_tokens, text_of, token
from tocsin.core.errors import InvalidInput

Value = float | int | str | bool

MAX_BYTES = 1024 * 1024
MAX_DATAPOINTS = 10_000
MAX_TEXT_LENGTH = 4_096
MAX_LABELS = 32
MAX_LABEL_LENGTH = 256
_INT = 2**63
_MAX_PROBLEMS = 5
_MAX_SHOWN_LENGTH = 80
_NO_LABELS: dict[str, str] = {}
_FIELDS = frozenset({"value", "ts", "labels"})
_BATCH_FIELDS = frozenset({"key", "value", "ts", "labels"})

Label = Annotated[str, Field(max_length=MAX_LABEL_LENGTH)]


class _Datapoint(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    value: (
        Annotated[float, Field(allow_inf_nan=False)]
        | Annotated[str, Field(max_length=MAX_TEXT_LENGTH)]
        | bool
    ) = Field(description="A finite number, a text or a boolean.")
    ts: AwareDatetime | None = Field(
        None, description="Instant of the measurement, by the clock of the producer; by default its arrival."
    )
    labels: Annotated[dict[Label, Label], Field(max_length=MAX_LABELS)] | None = Field(
        None, description="Labels of the value, in addition to owner and key."
    )


class OneDatapoint(_Datapoint):
    """A datapoint of the series in the subject."""


class KeyedDatapoint(_Datapoint):
    """A datapoint in a batch."""

    key: Key = Field(default="", description="Key of the series; by default the key in the subject.")


class DatapointBatch(BaseModel):
    """Datapoints of one owner. On a subject with the key `_`, each has its own key."""

    model_config = ConfigDict(extra="forbid", strict=True)

    batch: Annotated[list[KeyedDatapoint], Field(min_length=1, max_length=MAX_DATAPOINTS)]


class DatapointMessage(RootModel[OneDatapoint | DatapointBatch]):
    """A message on `datapoint.<owner>.<key...>`."""


class Series(NamedTuple):
    owner: str
    key: str
    """Empty if the subject has none."""


class ReceivedDatapoint(NamedTuple):
    """A datapoint of a message; `number` is its position in it."""

    number: int
    key: str
    value: Value
    ts: datetime
    labels: dict[str, str]


class TimestampBounds(NamedTuple):
    """Largest differences between `ts` and the arrival."""

    past: timedelta
    future: timedelta


@lru_cache(maxsize=200_000)
def series_of(owner_token: str, key_tokens: str) -> Series:
    """The series of a subject. `ValueError` for tokens that are not in Tocsin's encoding: two
    encodings of one owner would be in two partitions."""
    owner = text_of(owner_token)
    if token(owner) != owner_token or len(owner) > MAX_OWNER_LENGTH or "\0" in owner:
        raise ValueError(f"the owner {owner_token[:200]!r} is not encoded as tocsin does it, or is too long")
    key = "" if key_tokens == "_" else ".".join(text_of(part) for part in key_tokens.split("."))
    if key and (series_tokens(key) != key_tokens):
        raise ValueError(f"the key {key_tokens[:200]!r} is not encoded as tocsin does it")
    return Series(owner, _key(key) if key else "")


def read_datapoints(
    key: str, body: bytes, arrived_at: datetime, bounds: TimestampBounds
) -> tuple[list[ReceivedDatapoint], list[str]]:
    """The datapoints of a message, and the problems of the others."""
    try:
        entries, fields = _entries(body)
    except ValueError as error:
        return [], [str(error)]
    earliest, latest = arrived_at - bounds.past, arrived_at + bounds.future
    datapoints: list[ReceivedDatapoint] = []
    problems: list[str] = []
    for number, entry in enumerate(entries):
        try:
            if type(entry) is not dict or not entry.keys() <= fields:
                raise ValueError(_unknown_key(entry, fields))
            value: Any = entry.get("value")
            if type(value) is not float or not isfinite(value):
                _check_value(value)
            ts = arrived_at
            if (text := entry.get("ts")) is not None:
                ts = _instant(text)
                if not earliest <= ts <= latest:
                    raise ValueError(_out_of_bounds(ts, arrived_at, bounds))
            if (labels := entry.get("labels")) is not None:
                _check_labels(labels)
            if (own := entry.get("key", key)) is not key and type(own) is not str:
                raise ValueError(f"key is {_shown(own)}: send a text")
            datapoints.append(ReceivedDatapoint(number, _producer_key(own), value, ts, labels or _NO_LABELS))
        except ValueError as error:
            problems.append(f"[{number}] {error}" if len(entries) > 1 else str(error))
    return datapoints, problems


def check_datapoint(owner: str, fields: dict[str, Any]) -> None:
    """Check a datapoint before it is sent. `InvalidInput` for one that a worker would reject."""
    try:
        if len(owner) > MAX_OWNER_LENGTH or "\0" in owner:
            raise ValueError(
                f"the owner {_shown(owner)} is too long, or holds NUL: use at most 128 characters"
            )
        value = fields["value"]
        if type(value) is not float or not isfinite(value):
            _check_value(value)
        if "labels" in fields:
            _check_labels(fields["labels"])
        _producer_key(fields["key"])
    except ValueError as error:
        raise InvalidInput(str(error)) from None


def problem_summary(problems: Sequence[str], count: int) -> str:
    """One sentence about the rejected datapoints of a message with `count` datapoints."""
    more = f"; and {len(problems) - _MAX_PROBLEMS} more" if len(problems) > _MAX_PROBLEMS else ""
    shown = "; ".join(problems[:_MAX_PROBLEMS]) + more
    return shown if count <= 1 else f"{len(problems)} of {count} datapoints were rejected: {shown}"


def _entries(body: bytes) -> tuple[list[Any], frozenset[str]]:
    if len(body) > MAX_BYTES:
        raise ValueError(f"the body has {len(body)} bytes: send at most {MAX_BYTES} in one message")
    try:
        parsed = from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        raise ValueError(
            f"the body is not JSON ({error}): send an object in UTF-8, with finite numbers"
        ) from None
    if type(parsed) is not dict:
        raise ValueError('the body is not an object: send {"value": ...} or {"batch": [...]}')
    if "batch" not in parsed:
        return [parsed], _FIELDS
    batch = parsed["batch"]
    if len(parsed) > 1 or type(batch) is not list:
        raise ValueError(
            'a body with "batch" holds a list and nothing else: give each datapoint its own "ts"'
        )
    if not 0 < len(batch) <= MAX_DATAPOINTS:
        raise ValueError(f"the batch has {len(batch)} datapoints: send 1 to {MAX_DATAPOINTS}")
    return batch, _BATCH_FIELDS


def _unknown_key(entry: object, fields: frozenset[str]) -> str:
    if not isinstance(entry, dict):
        return f"{_shown(entry)} is not a datapoint: send an object with a value"
    others = ", ".join(map(_shown, sorted(entry.keys() - fields)[:_MAX_PROBLEMS]))
    return f"unknown key {others}: use {', '.join(sorted(fields))}"


def _check_value(value: object) -> None:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        if not -_INT <= value < _INT:
            raise ValueError("the value is an integer beyond 64 bits: send it as a text")
    elif isinstance(value, str):
        if len(value) > MAX_TEXT_LENGTH:
            raise ValueError(f"the value has {len(value)} characters: send at most {MAX_TEXT_LENGTH}")
        if "\0" in value:
            raise ValueError("the value holds the character NUL: leave it out")
    else:
        raise ValueError(f"the value is {_shown(value)}: send a finite number, a text or a boolean")


def _instant(text: object) -> datetime:
    try:
        instant = datetime.fromisoformat(text)  # type: ignore[arg-type]
        if instant.tzinfo is None:
            raise ValueError
    except (ValueError, TypeError):
        raise ValueError(f"ts {_shown(text)} is not an instant: write 2026-03-02T08:00:00Z") from None
    return instant


def _out_of_bounds(ts: datetime, arrived_at: datetime, bounds: TimestampBounds) -> str:
    if ts > arrived_at:
        return (
            f"ts {ts.isoformat()} lies more than {format_duration(bounds.future)} after its arrival: "
            "correct the producer's clock"
        )
    return (
        f"ts {ts.isoformat()} lies more than {bounds.past.days} days before its arrival: "
        "it is outside of the retention"
    )


def _check_labels(labels: object) -> None:
    if not isinstance(labels, dict):
        raise ValueError(f"labels is {_shown(labels)}: send an object of texts")
    if len(labels) > MAX_LABELS:
        raise ValueError(f"there are {len(labels)} labels: send at most {MAX_LABELS}")
    for name, label in labels.items():
        if not isinstance(label, str):
            raise ValueError(f"the label {_shown(name)} is {_shown(label)}: send a text")
        if len(name) > MAX_LABEL_LENGTH or len(label) > MAX_LABEL_LENGTH:
            raise ValueError(
                f"the label {_shown(name)} is too long: use at most {MAX_LABEL_LENGTH} characters"
            )
        if "\0" in name or "\0" in label:
            raise ValueError(f"the label {_shown(name)} holds the character NUL: leave it out")


@lru_cache(maxsize=200_000)
def _producer_key(key: str) -> str:
    """Check a key of a producer. A health or a calculated value that producers could send would
    resolve alarms that are still valid."""
    if key == HEALTH_KEY:
        raise ValueError(f"{key!r} is reserved for the health of systems: send it under another key")
    if key.startswith(CALC_PREFIX):
        raise ValueError(f"{key!r} is reserved for the series of calc_rules: send it under another key")
    return _key(key)


@lru_cache(maxsize=200_000)
def _key(key: str) -> str:
    if not key:
        raise ValueError("no key: name it in the subject, or in each datapoint of a batch")
    return check_key(key)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _MAX_SHOWN_LENGTH else f"{text[:_MAX_SHOWN_LENGTH]}..."
