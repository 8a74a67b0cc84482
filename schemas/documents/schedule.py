"""The `schedule` document: a recurrence, and the event of each occurrence.

Guarantee: names are safe tokens, and the payload is plain JSON. `recurrence_keys` has the keys of the
recurrence.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from schemas.documents.recurrence_keys import RecurrenceDocument
from schemas.documents.runbook.retry import RetryPolicy
from schemas.values.annotation import Description, RunbookUrl, Title
from schemas.values.duration import Duration
from schemas.values.event_types import ScheduleEventType
from schemas.values.json_shape import check_json_shape
from schemas.values.names import Name, Owner
from schemas.values.pydantic_check import pydantic_check


def _check_payload(payload: dict[str, JsonValue]) -> dict[str, JsonValue]:
    check_json_shape(payload)
    return payload


class ScheduleDocument(RecurrenceDocument):
    """A recurrence in a timezone. Each occurrence becomes an event."""

    name: Name = Field(description="Unique name of the schedule.", examples=["daily-digest"])
    spread: Duration | None = Field(
        None,
        description="Adds a stable delay below this, derived from the name, so that schedules do not fire all at once.",
        examples=["5m"],
    )
    catch_up: Literal["latest", "all", "none"] = Field(
        "latest",
        description="After an outage: fire the most recent missed occurrence, each of them in order, or none.",
        examples=["latest"],
    )
    window: Duration | None = Field(
        None,
        description="Missed occurrences older than this stay missed (default: no limit).",
        examples=["6h"],
    )
    grace: Duration | None = Field(
        None,
        description="Largest lateness of a fire that is on time "
        "(default: the smaller of one minute and half the time to the next occurrence).",
        examples=["30s"],
    )
    max_catch_up: int = Field(
        100, ge=1, le=10_000, description="Largest number of fires for `catch_up: all`.", examples=[100]
    )
    type: ScheduleEventType = Field(
        "schedule-fired",
        description="Type of the event; the types that Tocsin itself writes are reserved.",
        examples=["schedule-fired"],
    )
    owner: Owner = Field("", description="Owner of the event.", examples=["plant-7"])
    payload: Annotated[dict[str, JsonValue], AfterValidator(pydantic_check(_check_payload))] = Field(
        default_factory=dict,
        description="Payload of the event, a JSON object.",
        examples=[{"report": "digest"}],
    )
    action: Name | None = Field(
        None, description="Name of an action to run at each fire.", examples=["email-digest"]
    )
    retry: RetryPolicy | None = Field(
        None,
        description="Attempts and delays for the steps of its action, instead of those in the action.",
        examples=[{"attempts": 3, "initial_interval": "1m"}],
    )
    title: Title | None = Field(None, description="A name for people.", examples=["Daily digest of plant 7"])
    description: Description | None = Field(
        None, description="A note for readers.", examples=["Sent to the shift lead before the shift begins."]
    )
    runbook_url: RunbookUrl | None = Field(
        None,
        description="Where people read what to do about it.",
        examples=["https://wiki.example.com/digest"],
    )
    enabled: bool = Field(True, description="false pauses the schedule.", examples=[True])
