"""The `maintenance` document: recurring windows in which the matching alarms notify no one.

Guarantee: a window has a start by its recurrence and a length in elapsed time, so a change of the
clocks does not shorten or lengthen it. The loader compiles `where` and checks the recurrence.
"""

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.documents.recurrence_keys import RecurrenceDocument
from schemas.documents.strict_model import document_error
from schemas.fields import MAX_REASON_LENGTH, MAX_SILENCE
from schemas.values.duration import Duration, format_duration
from schemas.values.names import Name


class MaintenanceDocument(RecurrenceDocument):
    """Silences matching alarms in recurring windows. Each window becomes a silence."""

    name: Name = Field(description="Unique name of the maintenance.", examples=["patch-night"])
    where: str = Field(
        description="CEL condition over an alarm; alarms for which it is true are silenced.",
        examples=['labels.site == "ams"', 'owner == "plant-7" && severity < disaster'],
        max_length=MAX_CONDITION_LENGTH,
    )
    duration: Duration = Field(
        description="Length of a window, in elapsed time, at most 366d.", examples=["2h"]
    )
    reason: str = Field(
        "",
        description="Why, for the people who see a silenced alarm.",
        examples=["operating system updates"],
        max_length=MAX_REASON_LENGTH,
    )
    enabled: bool = Field(True, description="false opens no windows.", examples=[True])

    @model_validator(mode="after")
    def _has_a_length(self) -> Self:
        if not timedelta(0) < self.duration <= MAX_SILENCE:
            lasts = format_duration(self.duration)
            raise document_error(
                f"lasts {lasts}: write more than 0s and at most {MAX_SILENCE.days}d", "duration"
            )
        return self
