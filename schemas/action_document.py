"""The `action` document: one response, `log` or `publish`.

Guarantee: exactly one response; every placeholder names a field that events have; the fixed part of a
subject is a legal NATS subject outside the names that Tocsin and NATS keep for themselves.

Why reserved subjects are refused: the record log's stream accepts one writer, and its sequence numbers
are the proof that nothing was lost or sent twice.
"""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from schemas.json_shape import check_json_shape
from schemas.names import Name
from schemas.placeholders import PLACEHOLDER, check_placeholders
from tocsin.core.errors import InvalidInput

ACTION_KEYS = ("log", "publish")
_TOKEN = re.compile(r"[^\s.*>\x00-\x1f\x7f]+")


def check_subject(subject: str) -> None:
    """Refuses a subject that NATS would refuse, or that is not the user's to write."""
    for token in subject.split("."):
        if not _TOKEN.fullmatch(token):
            raise InvalidInput(
                f"{subject!r} is not a subject to publish to: "
                "write tokens joined by dots, without spaces, '*' and '>'"
            )
    if subject.startswith("$") or subject.split(".")[0] in ("tocsin", "_INBOX"):
        raise InvalidInput(f"the subject {subject!r} is reserved: start it with another word")


def _template(template: str) -> str:
    try:
        check_placeholders(template)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return template


def _subject_template(subject: str) -> str:
    _template(subject)
    try:
        # A letter stands for what the event will fill in: a value is encoded to one token.
        check_subject(PLACEHOLDER.sub("x", subject))
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return subject


def _payload_template(payload: dict[str, JsonValue]) -> dict[str, JsonValue]:
    try:
        check_json_shape(payload)
        check_placeholders(payload)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return payload


class LogAction(BaseModel):
    """Writes one line to the log of the worker."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    message: Annotated[str, AfterValidator(_template)] = Field(
        description="Text of the line; `{{ ... }}` is filled from the event.",
        examples=["{{ schedule }} fired at {{ ts }}"],
        min_length=1,
        max_length=4_000,
    )


class PublishAction(BaseModel):
    """Publishes one message on a NATS subject."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    subject: Annotated[str, AfterValidator(_subject_template)] = Field(
        description="NATS subject; values from the event are encoded to one token each.",
        examples=["reports.digest", "plants.{{ owner }}.digest"],
        min_length=1,
        max_length=255,
    )
    payload: Annotated[dict[str, JsonValue], AfterValidator(_payload_template)] = Field(
        default_factory=dict,
        description="JSON object to send; `{{ ... }}` in its texts is filled from the event.",
        examples=[{"report": "digest", "at": "{{ ts }}"}],
    )


class ActionDocument(BaseModel):
    """A named response that rules and schedules refer to."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Name = Field(description="Unique name of the action.", examples=["email-digest"])
    log: LogAction | None = Field(
        None, description="Write a line to the log.", examples=[{"message": "{{ schedule }} fired"}]
    )
    publish: PublishAction | None = Field(
        None, description="Publish a message on a NATS subject.", examples=[{"subject": "reports.digest"}]
    )

    @model_validator(mode="after")
    def _has_one_response(self) -> Self:
        given = [key for key in ACTION_KEYS if getattr(self, key) is not None]
        if not given:
            raise PydanticCustomError("one_of", "needs one of log or publish", {})
        if len(given) > 1:
            raise PydanticCustomError(
                "one_of",
                "has both '{first}' and '{at_key}': keep one of log and publish",
                {"first": given[0], "at_key": given[1]},
            )
        return self
