"""Steps that write a log line, a NATS message, an event or a datapoint."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from schemas.documents.strict_model import StrictModel
from schemas.values.duration import Duration
from schemas.values.event_types import FreeEventType
from schemas.values.template_text import JsonTemplate, SubjectTemplate, TextTemplate, ValueTemplate


class LogStep(StrictModel):
    """Writes one line to the log of the worker."""

    message: TextTemplate = Field(
        description="Text of the line; `{{ ... }}` is filled from the event.",
        examples=["{{ schedule }} fired at {{ ts }}"],
        min_length=1,
    )


class PublishStep(StrictModel):
    """Publishes one message on a NATS subject."""

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
    """Publishes a message and waits until a service reports `completed` or `failed`."""

    within: Duration = Field(
        timedelta(minutes=5),
        description="Longest time until the report; after it the attempt is timed out.",
        examples=["5m"],
    )


class EmitStep(StrictModel):
    """Appends one event to the record log, exactly once, together with the outcome of the step."""

    type: FreeEventType = Field(
        description="Type of the event, in the past tense.", examples=["restart-requested"]
    )
    owner: TextTemplate = Field(
        "{{ owner }}",
        description="Owner of the event; by default the owner of the event that started the run.",
        examples=["plant-7"],
    )
    payload: JsonTemplate = Field(
        default_factory=dict,
        description="Payload of the event, a JSON object; `{{ ... }}` in its texts is filled from the event.",
        examples=[{"service": "{{ payload.service }}"}],
    )


class RecordStep(StrictModel):
    """Writes one datapoint, such as the reset of a counter."""

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
