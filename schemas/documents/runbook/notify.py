"""The step of a notification run. Only the dispatcher writes it: a document of a user cannot.

A notification run stays active while its alarm, or any alarm of its group, is open. Its one step
holds the notification queue (`rules.runbook.notification_queue`).
"""

from datetime import timedelta
from typing import ClassVar

from pydantic import Field

from schemas.documents.runbook.step import DELIVERY_TIMEOUT, StepDocument
from schemas.documents.strict_model import StrictModel
from schemas.values.duration import Duration
from schemas.values.names import Name
from schemas.values.priority import Priority

DEFAULT_GROUP_WAIT = timedelta(seconds=30)
DEFAULT_GROUP_INTERVAL = timedelta(minutes=5)


class NotifyStep(StrictModel):
    """A channel, and when it is notified."""

    channel: Name = Field(description="Name of the channel.", examples=["ops"])
    group_by: tuple[str, ...] = Field((), strict=False, description="Fields of the group.", examples=[[]])
    group_wait: Duration | None = Field(
        None,
        description="Time before the first message of a group; none for a single alarm.",
        examples=["30s"],
    )
    group_interval: Duration | None = Field(
        None, description="Shortest time between two messages of a group.", examples=["5m"]
    )
    repeat: Duration | None = Field(None, description="Time between reminders.", examples=["30m"])


class NotificationStep(StepDocument):
    """The only step of a notification run."""

    kinds: ClassVar[tuple[str, ...]] = ("notify",)

    notify: NotifyStep | None = Field(None, description="The queue.", examples=[{"channel": "ops"}])

    @property
    def attempt_timeout(self) -> timedelta:
        """Longest time of one attempt: of a delivery to the channel, and of one to its fallback."""
        return 2 * DELIVERY_TIMEOUT


class NotificationAction(StrictModel):
    """The document of a notification run."""

    name: Name = Field(description="`notify-` and the name of the channel.", examples=["notify-ops"])
    notify: NotifyStep = Field(description="The queue.", examples=[{"channel": "ops"}])
    priority: Priority = Field("normal", description="Priority of the channel.", examples=["high"])

    @property
    def finally_(self) -> None:
        """A notification has no last steps."""
        return None

    def runbook(self) -> tuple[StepDocument, ...]:
        return (NotificationStep.model_validate({"notify": self.notify}),)
