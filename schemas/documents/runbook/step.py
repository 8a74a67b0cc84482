"""One step of a runbook: a response, or a piece of flow around other steps.

Guarantee: exactly one of the kinds; what belongs to a response only (`retry`, `timeout`) is refused elsewhere,
because it would mean nothing there. Stored documents leave out what was not given.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.documents.runbook.deliveries import AppriseStep, ChannelStep, EmailStep, SlackStep, WebhookStep
from schemas.documents.runbook.looks import DigestStep, ProbeStep
from schemas.documents.runbook.messages import DispatchStep, EmitStep, LogStep, PublishStep, RecordStep
from schemas.documents.runbook.retry import RetryPolicy
from schemas.documents.runbook.wait import WaitStep
from schemas.values.duration import Duration
from schemas.values.names import Name

RESPONSES = (
    *("log", "publish", "dispatch", "emit", "record", "probe", "digest"),
    *("channel", "webhook", "slack", "email", "apprise"),
)
# Their targets have timeouts of their own, of a minute at most; this is the backstop.
_DELIVERIES = ("digest", "channel", "webhook", "slack", "email", "apprise", "probe")
FLOW = ("wait", "branch", "parallel")
DEFAULT_RETRY_POLICY = RetryPolicy.model_validate({})
DEFAULT_TIMEOUT = timedelta(seconds=30)
DELIVERY_TIMEOUT = timedelta(seconds=75)
MAX_STEPS = 100
MAX_BRANCHES = 20

Path = tuple[str | int, ...]


class Responses(BaseModel):
    """What an action, or a step of it, can do."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    kinds: ClassVar[tuple[str, ...]] = RESPONSES

    log: LogStep | None = Field(
        None, description="Write a line to the log.", examples=[{"message": "{{ schedule }} fired"}]
    )
    publish: PublishStep | None = Field(
        None, description="Publish a message on a NATS subject.", examples=[{"subject": "reports.digest"}]
    )
    dispatch: DispatchStep | None = Field(
        None,
        description="Publish a message and wait until a consumer reports its outcome.",
        examples=[{"subject": "jobs.backup", "within": "1h"}],
    )
    emit: EmitStep | None = Field(
        None, description="Append an event to the log.", examples=[{"type": "restart-requested"}]
    )
    record: RecordStep | None = Field(
        None, description="Write a datapoint.", examples=[{"key": "sla.breaches", "value": 0}]
    )
    probe: ProbeStep | None = Field(
        None,
        description="Look at a service from outside and write what was found as a datapoint.",
        examples=[{"key": "shop.up", "http": {"url": "https://shop.example.com/health"}}],
    )
    digest: DigestStep | None = Field(
        None,
        description="Gather open alarms, events and stale series, and send or keep them.",
        examples=[{"channel": "ops"}],
    )
    channel: ChannelStep | None = Field(
        None, description="Send a message through a channel.", examples=[{"name": "ops"}]
    )
    webhook: WebhookStep | None = Field(
        None, description="Send JSON over HTTP.", examples=[{"url": "https://hooks.example.com/tocsin"}]
    )
    slack: SlackStep | None = Field(
        None, description="Post to Slack.", examples=[{"url": {"env": "SLACK_URL"}}]
    )
    email: EmailStep | None = Field(
        None,
        description="Send mail.",
        examples=[
            {"smtp": {"host": "smtp.example.com"}, "from": "tocsin@example.com", "to": ["ops@example.com"]}
        ],
    )
    apprise: AppriseStep | None = Field(
        None, description="Send to any other service.", examples=[{"url": {"env": "TELEGRAM_URL"}}]
    )
    retry: RetryPolicy | None = Field(
        None, description="How often to try, and how long to wait in between.", examples=[{"attempts": 3}]
    )
    timeout: Duration | None = Field(
        None,
        description="How long one attempt may take (default: 30s, for what goes over the network 75s).",
        examples=["30s"],
    )

    @property
    def kind(self) -> str:
        return next(key for key in self.kinds if getattr(self, key) is not None)

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        given = [key for key in self.kinds if getattr(self, key) is not None]
        choice = ", ".join(self.kinds[:-1])
        if not given:
            raise PydanticCustomError(
                "one_of", "needs one of {choice} or {last}", {"choice": choice, "last": self.kinds[-1]}
            )
        if len(given) > 1:
            # `at_key` tells the loader which key of the file to point at.
            raise PydanticCustomError(
                "one_of",
                "has both '{first}' and '{at_key}': keep one of them",
                {"first": given[0], "at_key": given[1]},
            )
        for key in ("retry", "timeout"):
            if getattr(self, key) is not None and given[0] not in RESPONSES:
                raise PydanticCustomError(
                    "one_of",
                    "has '{at_key}', which means nothing beside '{first}': remove it",
                    {"at_key": key, "first": given[0]},
                )
        return self

    @model_serializer(mode="wrap")
    def _what_was_given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in dump(self).items() if value is not None}


class BranchStep(BaseModel):
    """Goes one of two ways, by a condition that is evaluated when the step is reached."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, validate_by_name=True, serialize_by_alias=True
    )

    when: str = Field(
        description="CEL condition over the event, the `alarm` as it is now, and the `answers` of earlier steps.",
        examples=['alarm.state == "open" && !alarm.acknowledged'],
        max_length=MAX_CONDITION_LENGTH,
    )
    then: "Steps" = Field(
        (), description="Steps to run if it is true.", examples=[[{"log": {"message": "yes"}}]]
    )
    else_: "Steps" = Field(
        (), alias="else", description="Steps to run if not.", examples=[[{"log": {"message": "no"}}]]
    )

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if not self.then and not self.else_:
            raise PydanticCustomError("one_of", "needs steps in 'then' or 'else'", {})
        return self


class StepDocument(Responses):
    """One step. Steps run one after the other."""

    kinds: ClassVar[tuple[str, ...]] = (*RESPONSES, *FLOW)

    name: Name | None = Field(
        None,
        description="Name of the step; its answer is `answers.<name>` for the steps after it.",
        examples=["notify"],
    )
    on_failure: Literal["stop", "continue"] = Field(
        "stop",
        description="After the last attempt: end the action as failed, or go on with the next step.",
        examples=["continue"],
    )
    wait: WaitStep | None = Field(
        None, description="Let time pass, or wait for an event.", examples=[{"for": "10m"}]
    )
    branch: BranchStep | None = Field(
        None, description="Go one of two ways.", examples=[{"when": "severity >= high", "then": []}]
    )
    parallel: "Branches | None" = Field(
        None,
        description="Lists of steps that run side by side; the next step begins when all have ended.",
        examples=[[[{"log": {"message": "one"}}], [{"log": {"message": "two"}}]]],
    )

    @property
    def retry_policy(self) -> RetryPolicy:
        return self.retry or DEFAULT_RETRY_POLICY

    @property
    def attempt_timeout(self) -> timedelta:
        """How long one attempt may take."""
        return self.timeout or (DELIVERY_TIMEOUT if self.kind in _DELIVERIES else DEFAULT_TIMEOUT)


Steps = Annotated[tuple[StepDocument, ...], Field(strict=False, max_length=MAX_STEPS)]
Branch = Annotated[tuple[StepDocument, ...], Field(strict=False, min_length=1, max_length=MAX_STEPS)]
Branches = Annotated[tuple[Branch, ...], Field(strict=False, min_length=1, max_length=MAX_BRANCHES)]
BranchStep.model_rebuild()
StepDocument.model_rebuild()


def walk(steps: tuple[StepDocument, ...], path: Path = ("steps",)) -> Iterator[tuple[Path, StepDocument]]:
    """Every step with its place in the document, in the order of the text."""
    for number, step in enumerate(steps):
        place = (*path, number)
        yield place, step
        if step.branch is not None:
            yield from walk(step.branch.then, (*place, "branch", "then"))
            yield from walk(step.branch.else_, (*place, "branch", "else"))
        for branch_number, branch in enumerate(step.parallel or ()):
            yield from walk(branch, (*place, "parallel", branch_number))
