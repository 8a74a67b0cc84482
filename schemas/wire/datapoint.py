"""Datapoints as producers send them: one, or a batch, as JSON on `datapoint.<owner>.<key...>`.

Guarantee: what `read_datapoints` returns can be stored, judged and shown: keys are keys, values are finite numbers of
at most 64 bits, short texts without NUL, or booleans, instants are aware and within bounds, labels are few and short.
Everything else comes back as a sentence that names the place and the remedy; the good ones of a batch are not held
up by the bad ones.

Why by hand: this is the hottest path of the house, and a producer deserves better sentences than those of a union type.
The models are what is exported; a test holds the two equal.
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
from schemas.wire.calculated import HEALTH_KEY
from schemas.wire.subjects import series_tokens, text_of, token
from tocsin.core.errors import InvalidInput

Value = float | int | str | bool

MOST_BYTES = 1024 * 1024
MOST_DATAPOINTS = 10_000
LONGEST_TEXT = 4_096
MOST_LABELS = 32
LONGEST_LABEL = 256
_INT = 2**63
_SHOWN = 5
_LONGEST_SHOWN = 80
_NO_LABELS: dict[str, str] = {}
_ONE = frozenset({"value", "ts", "labels"})
_OF_BATCH = frozenset({"key", "value", "ts", "labels"})

Label = Annotated[str, Field(max_length=LONGEST_LABEL)]


class _Datapoint(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    value: (
        Annotated[float, Field(allow_inf_nan=False)] | Annotated[str, Field(max_length=LONGEST_TEXT)] | bool
    ) = Field(description="A finite number, a text or a boolean.")
    ts: AwareDatetime | None = Field(
        None, description="When it was measured, by the producer's clock; without it, when it arrives."
    )
    labels: Annotated[dict[Label, Label], Field(max_length=MOST_LABELS)] | None = Field(
        None, description="What the value is about, beyond owner and key."
    )


class OneDatapoint(_Datapoint):
    """A value of the series that the subject names."""


class KeyedDatapoint(_Datapoint):
    """A value in a batch."""

    key: Key = Field(default="", description="Its series; without it, the one that the subject names.")


class DatapointBatch(BaseModel):
    """Values of one owner. On a subject whose key is `_`, each names its own."""

    model_config = ConfigDict(extra="forbid", strict=True)

    batch: Annotated[list[KeyedDatapoint], Field(min_length=1, max_length=MOST_DATAPOINTS)]


class DatapointMessage(RootModel[OneDatapoint | DatapointBatch]):
    """The body of a message on `datapoint.<owner>.<key...>`."""


class Series(NamedTuple):
    owner: str
    key: str
    """Empty where the subject names none."""


class Read(NamedTuple):
    """A datapoint of a message; `place` is its number in it."""

    place: int
    key: str
    value: Value
    ts: datetime
    labels: dict[str, str]


class Bounds(NamedTuple):
    """How far `ts` may lie from the arrival."""

    past: timedelta
    future: timedelta


@lru_cache(maxsize=200_000)
def series_of(owner_token: str, key_tokens: str) -> Series:
    """The inverse of the subject. `ValueError` for tokens that we would have written otherwise: two spellings of one
    owner would be two partitions."""
    owner = text_of(owner_token)
    if token(owner) != owner_token or len(owner) > 128 or "\0" in owner:
        raise ValueError(f"the owner {owner_token[:200]!r} is not encoded as tocsin does it, or is too long")
    key = "" if key_tokens == "_" else ".".join(text_of(part) for part in key_tokens.split("."))
    if key and (series_tokens(key) != key_tokens):
        raise ValueError(f"the key {key_tokens[:200]!r} is not encoded as tocsin does it")
    return Series(owner, _key(key) if key else "")


def read_datapoints(
    key: str, body: bytes, arrived_at: datetime, bounds: Bounds
) -> tuple[list[Read], list[str]]:
    """The datapoints of a message, and what is wrong with the others."""
    try:
        entries, fields = _entries(body)
    except ValueError as error:
        return [], [str(error)]
    earliest, latest = arrived_at - bounds.past, arrived_at + bounds.future
    found: list[Read] = []
    problems: list[str] = []
    for place, entry in enumerate(entries):
        try:
            if type(entry) is not dict or not entry.keys() <= fields:
                raise ValueError(_unknown(entry, fields))
            value: Any = entry.get("value")
            if type(value) is not float or not isfinite(value):
                _check_value(value)
            ts = arrived_at
            if (text := entry.get("ts")) is not None:
                ts = _instant(text)
                if not earliest <= ts <= latest:
                    raise ValueError(_outside(ts, arrived_at, bounds))
            if (labels := entry.get("labels")) is not None:
                _check_labels(labels)
            if (own := entry.get("key", key)) is not key and type(own) is not str:
                raise ValueError(f"key is {_shown(own)}: send a text")
            found.append(Read(place, _observed(own), value, ts, labels or _NO_LABELS))
        except ValueError as error:
            problems.append(f"[{place}] {error}" if len(entries) > 1 else str(error))
    return found, problems


def check_datapoint(owner: str, fields: dict[str, Any]) -> None:
    """What a producer can know before it sends: `InvalidInput` for a datapoint that no worker would take."""
    try:
        if len(owner) > 128 or "\0" in owner:
            raise ValueError(
                f"the owner {_shown(owner)} is too long, or holds NUL: use at most 128 characters"
            )
        value = fields["value"]
        if type(value) is not float or not isfinite(value):
            _check_value(value)
        if "labels" in fields:
            _check_labels(fields["labels"])
        _observed(fields["key"])
    except ValueError as error:
        raise InvalidInput(str(error)) from None


def summary(problems: Sequence[str], count: int) -> str:
    """One sentence about the datapoints of a message that were set aside, of `count`."""
    more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    shown = "; ".join(problems[:_SHOWN]) + more
    return shown if count <= 1 else f"{len(problems)} of {count} datapoints were set aside: {shown}"


def _entries(body: bytes) -> tuple[list[Any], frozenset[str]]:
    if len(body) > MOST_BYTES:
        raise ValueError(f"the body has {len(body)} bytes: send at most {MOST_BYTES} in one message")
    try:
        parsed = from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        raise ValueError(
            f"the body is not JSON ({error}): send an object in UTF-8, with finite numbers"
        ) from None
    if type(parsed) is not dict:
        raise ValueError('the body is not an object: send {"value": ...} or {"batch": [...]}')
    if "batch" not in parsed:
        return [parsed], _ONE
    batch = parsed["batch"]
    if len(parsed) > 1 or type(batch) is not list:
        raise ValueError(
            'a body with "batch" holds a list and nothing else: give each datapoint its own "ts"'
        )
    if not 0 < len(batch) <= MOST_DATAPOINTS:
        raise ValueError(f"the batch has {len(batch)} datapoints: send 1 to {MOST_DATAPOINTS}")
    return batch, _OF_BATCH


def _unknown(entry: object, fields: frozenset[str]) -> str:
    if not isinstance(entry, dict):
        return f"{_shown(entry)} is not a datapoint: send an object with a value"
    others = ", ".join(map(_shown, sorted(entry.keys() - fields)[:_SHOWN]))
    return f"unknown key {others}: use {', '.join(sorted(fields))}"


def _check_value(value: object) -> None:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        if not -_INT <= value < _INT:
            raise ValueError("the value is an integer beyond 64 bits: send it as a text")
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise ValueError(f"the value has {len(value)} characters: send at most {LONGEST_TEXT}")
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
        raise ValueError(f"ts {_shown(text)} is no instant: write 2026-03-02T08:00:00Z") from None
    return instant


def _outside(ts: datetime, arrived_at: datetime, bounds: Bounds) -> str:
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
    if len(labels) > MOST_LABELS:
        raise ValueError(f"there are {len(labels)} labels: send at most {MOST_LABELS}")
    for name, label in labels.items():
        if not isinstance(label, str):
            raise ValueError(f"the label {_shown(name)} is {_shown(label)}: send a text")
        if len(name) > LONGEST_LABEL or len(label) > LONGEST_LABEL:
            raise ValueError(f"the label {_shown(name)} is too long: use at most {LONGEST_LABEL} characters")
        if "\0" in name or "\0" in label:
            raise ValueError(f"the label {_shown(name)} holds the character NUL: leave it out")


@lru_cache(maxsize=200_000)
def _observed(key: str) -> str:
    """A key that producers may send: a health that anybody can say would end alarms that are true."""
    if key == HEALTH_KEY:
        raise ValueError(f"{key!r} is what tocsin itself says of a system: send it under another key")
    return _key(key)


@lru_cache(maxsize=200_000)
def _key(key: str) -> str:
    if not key:
        raise ValueError("no key: name it in the subject, or in each datapoint of a batch")
    return check_key(key)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
