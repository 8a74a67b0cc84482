"""The `action` document: one response, `log` or `publish`.

Guarantee: exactly one response. `check_subject` refuses what is no NATS subject, and the names that Tocsin
and NATS keep for themselves; the loader asks it for the fixed part of a subject, the worker for the whole.

Why reserved subjects are refused: the record log's stream accepts one writer, and its sequence numbers
are the proof that nothing was lost or sent twice.
"""

import re
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.names import Name
from schemas.templates import JsonTemplate, SubjectTemplate, TextTemplate
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


class LogAction(BaseModel):
    """Writes one line to the log of the worker."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    message: TextTemplate = Field(
        description="Text of the line; `{{ ... }}` is filled from the event.",
        examples=["{{ schedule }} fired at {{ ts }}"],
        min_length=1,
    )


class PublishAction(BaseModel):
    """Publishes one message on a NATS subject."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    subject: SubjectTemplate = Field(
        description="NATS subject; values from the event are encoded to one token each.",
        examples=["reports.digest", "plants.{{ owner }}.digest"],
    )
    payload: JsonTemplate = Field(
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
