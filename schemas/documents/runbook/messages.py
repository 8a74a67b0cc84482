"""Steps that write a line, a message, an event or a datapoint."""

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from schemas.values.duration import Duration
from schemas.values.names import Name
from schemas.values.template_text import JsonTemplate, SubjectTemplate, TextTemplate, ValueTemplate

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class LogStep(BaseModel):
    """Writes one line to the log of the worker."""

    model_config = _STRICT

    message: TextTemplate = Field(
        description="Text of the line; `{{ ... }}` is filled from the event.",
        examples=["{{ schedule }} fired at {{ ts }}"],
        min_length=1,
    )


class PublishStep(BaseModel):
    """Publishes one message on a NATS subject."""

    model_config = _STRICT

    subject: SubjectTemplate = Field(
        description="NATS subject; values from the event are encoded to one token each.",
        examples=["reports.digest", "plants.{{ owner }}.digest"],
    )
    payload: JsonTemplate = Field(
        default_factory=dict,
        description="JSON object to send; `{{ ... }}` in its texts is filled from the event.",
        examples=[{"report": "digest", "at": "{{ ts }}"}],
    )


class DispatchStep(PublishStep):
    """Publishes a message and waits until whoever took it reports `completed` or `failed`."""

    within: Duration = Field(
        timedelta(minutes=5),
        description="How long to wait for the report; after that the attempt is timed out.",
        examples=["5m"],
    )


class EmitStep(BaseModel):
    """Appends one event to the log, exactly once, with the outcome of the step."""

    model_config = _STRICT

    type: Name = Field(description="Type of the event, in the past tense.", examples=["restart-requested"])
    owner: TextTemplate = Field(
        "{{ owner }}",
        description="Whom it is about; the same as the event's by default.",
        examples=["plant-7"],
    )
    payload: JsonTemplate = Field(
        default_factory=dict,
        description="JSON object it carries; `{{ ... }}` in its texts is filled from the event.",
        examples=[{"service": "{{ payload.service }}"}],
    )


class RecordStep(BaseModel):
    """Writes one observed datapoint, such as the reset of a counter."""

    model_config = _STRICT

    key: Annotated[TextTemplate, Field(min_length=1)] = Field(
        description="Key of the series; its dots are levels.", examples=["sla.breaches"]
    )
    value: ValueTemplate = Field(
        description="A number, a text, true or false; `{{ ... }}` is filled from the event.",
        examples=[0, "{{ payload.reading }}"],
    )
    owner: TextTemplate = Field(
        "{{ owner }}", description="Owner of the series; the event's by default.", examples=["plant-7"]
    )
