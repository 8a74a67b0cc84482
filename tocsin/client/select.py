"""Selection of records by the parts of their subject, so that NATS sends only the selected ones.

Guarantee: a part is compared as a whole text, whatever it contains (`owner="plant 7"`,
`name="a.b"`), because it is encoded as the publisher encodes it. None means any, a list means any
of its texts, "" means that the part is empty. The handler gets the model of the selection: `Events`
gives `Event`, and so on.

On failure: `InvalidInput` at once for a value that no record can have; `Unreadable` for a body that
is not a record.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from schemas.error_text import error_text
from schemas.wire.calculated import CalculatedDatapoint
from schemas.wire.event import Event, Origin
from schemas.wire.step import ActionStep
from schemas.wire.subjects import token
from schemas.wire.tombstone import Tombstone
from tocsin.core.errors import InvalidInput, TocsinError

Record = Event | ActionStep | CalculatedDatapoint | Tombstone
R = TypeVar("R", covariant=True)
Part = str | list[str] | tuple[str, ...] | set[str] | frozenset[str] | None

_ORIGINS: tuple[str, ...] = get_args(Origin)
# By the token after the version in the subject.
_MODELS: dict[str, type[BaseModel]] = {
    "event": Event,
    "action": ActionStep,
    "staleness": CalculatedDatapoint,
    "health": CalculatedDatapoint,
    "calc": CalculatedDatapoint,
    "tombstone": Tombstone,
}
_CALCULATED = ("staleness", "health", "calc")


class Unreadable(TocsinError):
    """A message on a subject of records that is not a record."""


@dataclass(frozen=True, kw_only=True)
class Select(Generic[R]):
    """A selection of records. Use one of the subclasses."""

    namespace: str | None = None
    """The first part of every subject. None: TOCSIN_NAMESPACE, or `tocsin`."""

    def subjects(self, prefix: str) -> list[str]:
        raise NotImplementedError

    def read(self, subject: str, body: bytes) -> R:
        """The record in a message. `subject` begins with the namespace and the version."""
        kind = subject.split(".")[2]
        try:
            record: R = _MODELS[kind].model_validate_json(body)  # type: ignore[assignment]
        except KeyError:
            raise Unreadable(f"{subject!r} is not a subject of records that this version knows") from None
        except ValidationError as error:
            raise Unreadable(f"the body is not a valid {kind}: {error_text(error, 'it')}") from None
        return record


@dataclass(frozen=True, kw_only=True)
class Events(Select[Event]):
    """Events. `name` is the schedule, rule or action that they belong to."""

    origin: Part = None
    type: Part = None
    name: Part = None
    owner: Part = None

    def __post_init__(self) -> None:
        for origin in _texts("origin", self.origin) or ():
            if origin not in _ORIGINS:
                raise InvalidInput(
                    f"origin {origin!r} does not exist", remedy=f"use one of {', '.join(_ORIGINS)}"
                )
        self.subjects("")

    def subjects(self, prefix: str) -> list[str]:
        parts = {"origin": self.origin, "type": self.type, "name": self.name, "owner": self.owner}
        return _subjects(f"{prefix}.event", parts)


@dataclass(frozen=True, kw_only=True)
class Steps(Select[ActionStep]):
    """Steps of actions, by the action's name."""

    name: Part = None

    def __post_init__(self) -> None:
        self.subjects("")

    def subjects(self, prefix: str) -> list[str]:
        return _subjects(f"{prefix}.action", {"name": self.name})


@dataclass(frozen=True, kw_only=True)
class CalculatedDatapoints(Select[CalculatedDatapoint]):
    """Calculated datapoints of an owner: stale or fresh series, the health of systems,
    and the values of calc_rules."""

    owner: Part = None

    def __post_init__(self) -> None:
        self.subjects("")

    def subjects(self, prefix: str) -> list[str]:
        owners = _texts("owner", self.owner)
        if owners is None:
            return [f"{prefix}.{level}.>" for level in _CALCULATED]
        return [f"{prefix}.{level}.{token(owner)}.>" for level in _CALCULATED for owner in owners]


@dataclass(frozen=True, kw_only=True)
class Tombstones(Select[Tombstone]):
    """Tombstones of records that could not be published or that were lost."""

    def subjects(self, prefix: str) -> list[str]:
        return [f"{prefix}.tombstone.>"]


@dataclass(frozen=True, kw_only=True)
class Records(Select[Record]):
    """All records of the stream."""

    def subjects(self, prefix: str) -> list[str]:
        return [f"{prefix}.{kind}.>" for kind in _MODELS]


def check_select(select: object) -> None:
    if not isinstance(select, Select):
        raise InvalidInput(
            f"{select!r} selects no records",
            remedy="give Events(), Steps(), CalculatedDatapoints(), Tombstones() or Records()",
        )


def _subjects(beginning: str, parts: dict[str, Part]) -> list[str]:
    texts = [_texts(name, part) for name, part in parts.items()]
    if not any(texts):
        return [f"{beginning}.>"]
    tokens = [["*"] if chosen is None else [token(text) for text in chosen] for chosen in texts]
    return [".".join((beginning, *choice)) for choice in itertools.product(*tokens)]


def _texts(name: str, part: Part) -> list[str] | None:
    """The selected texts; None for any."""
    if part is None:
        return None
    texts = list(part) if isinstance(part, list | tuple | set | frozenset) else [part]
    if not texts:
        raise InvalidInput(f"{name}=[] selects nothing", remedy="leave it out to select all")
    for text in texts:
        if not isinstance(text, str):
            raise InvalidInput(
                f"{name}={text!r} is not a text", remedy="give a text, a list of texts, or leave it out"
            )
    return list(dict.fromkeys(texts))
