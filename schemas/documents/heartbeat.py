"""The `heartbeat` document: a job that must check in, by a recurrence or after an interval.

Guarantee: exactly one of `cron`, `rrule` and `every`. An `rrule` has a `dtstart`, so that the expected
times do not depend on when the document was applied. `every` counts from the last check-in.
"""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import Field, model_validator

from schemas.documents.channel_names import Channels
from schemas.documents.event_rule import PositiveDuration, Severity
from schemas.documents.recurrence_keys import RecurrenceDocument
from schemas.documents.strict_model import document_error
from schemas.values.annotation import Description, RunbookUrl, Title
from schemas.values.duration import Duration, format_duration, parse_duration
from schemas.values.names import Name, Owner
from tocsin.core.errors import InvalidInput

DEFAULT_GRACE = timedelta(minutes=5)
SHORTEST_EVERY = timedelta(seconds=1)


class HeartbeatDocument(RecurrenceDocument):
    """A job that is expected to check in. An alarm opens if it is late, fails or runs too long."""

    name: Name = Field(description="Unique name of the job.", examples=["nightly-backup"])
    every: str | None = Field(
        None, description="Longest time between two check-ins, in elapsed time.", examples=["10m"]
    )
    grace: Duration = Field(
        DEFAULT_GRACE,
        description="How long after the expected time a check-in is still in time.",
        examples=["15m"],
    )
    early: Duration | None = Field(
        None,
        description="How long before the expected time a check-in counts for it (default: `grace`), at most half of "
        "the time since the expected time before.",
        examples=["10m"],
    )
    max_duration: PositiveDuration | None = Field(
        None,
        description="Longest time between the start and the end of a run (default: until the next check-in is late).",
        examples=["1h"],
    )
    severity: Severity = Field("warning", description="Level of its alarm.", examples=["high"])
    notify: Channels = Field((), description="Channels that are notified of its alarm.", examples=[["ops"]])
    repeat: PositiveDuration | None = Field(
        None,
        description="Notify the channels again after this time, until the alarm is acknowledged or resolved.",
        examples=["30m"],
    )
    owners: Annotated[tuple[Owner, ...], Field(strict=False, max_length=1_000)] = Field(
        (),
        description="Owners that run the job, each expected by itself (default: one owner with the name of the job).",
        examples=[["db-1", "db-2"]],
    )
    title: Title = Field("", description="A name for people.", examples=["Backup of the orders"])
    description: Description = Field("", description="A note for readers.", examples=["Runs on db-1."])
    runbook_url: RunbookUrl = Field(
        "", description="Where people read what to do about it.", examples=["https://wiki.example.com/backup"]
    )
    enabled: bool = Field(True, description="false expects nothing.", examples=[True])

    @property
    def expected_owners(self) -> tuple[str, ...]:
        return self.owners or (self.name,)

    @property
    def interval(self) -> timedelta | None:
        """The duration of `every`."""
        return None if self.every is None else parse_duration(self.every)

    @model_validator(mode="after")
    def _can_be_expected(self) -> Self:
        if self.at is not None:
            raise document_error("has 'at', which comes once: use cron, rrule or every", "at")
        if self.rrule is not None and self.dtstart is None:
            raise document_error("has 'rrule' without 'dtstart': add the first expected time", "rrule")
        self._check_interval()
        if self.repeat is not None and not self.notify:
            raise document_error("has 'repeat' without 'notify': name the channels", "repeat")
        if len(set(self.owners)) < len(self.owners):
            raise document_error("names an owner twice: name each once", "owners")
        return self

    def _check_interval(self) -> None:
        if self.every is None:
            return
        try:
            interval = parse_duration(self.every)
        except InvalidInput as error:
            raise document_error(f"has an 'every' that cannot be read: {error}", "every") from None
        if interval < SHORTEST_EVERY:
            shortest = format_duration(SHORTEST_EVERY)
            raise document_error(f"has 'every: {self.every}': write at least {shortest}", "every")
        for key in ("early", "starts_at", "ends_at", "only_in", "except_", "shift"):
            if getattr(self, key):
                name = key.rstrip("_")
                raise document_error(
                    f"has '{name}', which needs fixed times, and 'every': use cron, or remove '{name}'", name
                )
