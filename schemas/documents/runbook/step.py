"""One step of a runbook: a response, or a piece of flow around other steps.

Guarantee: exactly one of the kinds. `retry` and `timeout` belong to responses and are errors
elsewhere, because they would have no effect. Stored documents leave out keys without a value.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.documents.runbook.deliveries import AppriseStep, ChannelStep, EmailStep, SlackStep, WebhookStep
from schemas.documents.runbook.digest import DigestStep
from schemas.documents.runbook.messages import DispatchStep, EmitStep, LogStep, PublishStep, RecordStep
from schemas.documents.runbook.probe import ProbeStep
from schemas.documents.runbook.retry import RetryPolicy
from schemas.documents.runbook.wait import WaitStep
from schemas.documents.strict_model import StrictModel, document_error
from schemas.values.duration import Duration
from schemas.values.names import Name

RESPONSES = (
    *("log", "publish", "dispatch", "emit", "record", "probe", "digest"),
    *("channel", "webhook", "slack", "email", "apprise"),
)
# Their targets have timeouts of their own, of a minute at most.
_DELIVERIES = ("digest", "channel", "webhook", "slack", "email", "apprise", "probe")
FLOW = ("wait", "branch", "parallel")
DEFAULT_RETRY_POLICY = RetryPolicy.model_validate({})
DEFAULT_TIMEOUT = timedelta(seconds=30)
DELIVERY_TIMEOUT = timedelta(seconds=75)
MAX_STEPS = 100
MAX_BRANCHES = 20

Path = tuple[str | int, ...]


class Responses(StrictModel):
    """The responses of an action or of a step."""

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
        description="Check a service from outside and write the result as datapoints.",
        examples=[{"key": "shop.up", "http": {"url": "https://shop.example.com/health"}}],
    )
    digest: DigestStep | None = Field(
        None,
        description="List open alarms, events and stale series, and send or keep the list.",
        examples=[{"channel": "ops"}],
    )
    channel: ChannelStep | None = Field(
        None, description="Send a message through a channel.", examples=[{"name": "ops"}]
    )
    webhook: WebhookStep | None = Field(
        None, description="Send JSON over HTTP.", examples=[{"url": "https://hooks.example.com/tocsin"}]
    )
    slack: SlackStep | None = Field(
        None, description="Post to Slack.", examples=[{"url": {"secret": "slack-url"}}]
    )
    email: EmailStep | None = Field(
        None,
        description="Send mail.",
        examples=[
            {"smtp": {"host": "smtp.example.com"}, "from": "tocsin@example.com", "to": ["ops@example.com"]}
        ],
    )
    apprise: AppriseStep | None = Field(
        None, description="Send to any other service.", examples=[{"url": {"secret": "telegram-url"}}]
    )
    retry: RetryPolicy | None = Field(
        None, description="Number of attempts, and the delays between them.", examples=[{"attempts": 3}]
    )
    timeout: Duration | None = Field(
        None,
        description="Longest time of one attempt (default: 30s, for steps that reach outside services 75s).",
        examples=["30s"],
    )

    @property
    def kind(self) -> str:
        return next(key for key in self.kinds if getattr(self, key) is not None)

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        present = [key for key in self.kinds if getattr(self, key) is not None]
        if not present:
            raise document_error(f"needs one of {', '.join(self.kinds[:-1])} or {self.kinds[-1]}")
        if len(present) > 1:
            raise document_error(f"has both '{present[0]}' and '{present[1]}': keep one of them", present[1])
        for key in ("retry", "timeout"):
            if getattr(self, key) is not None and present[0] not in RESPONSES:
                raise document_error(f"has '{key}', which has no effect on '{present[0]}': remove it", key)
        return self

    @model_serializer(mode="wrap")
    def _dump_present(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in dump(self).items() if value is not None}


class BranchStep(StrictModel):
    """Runs one of two lists of steps, by a condition that is evaluated when the step is reached."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

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
            raise document_error("needs steps in 'then' or 'else'")
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
        description="After the last failed attempt: end the run as failed, or continue with the next step.",
        examples=["continue"],
    )
    wait: WaitStep | None = Field(
        None, description="Let time pass, or wait for an event.", examples=[{"for": "10m"}]
    )
    branch: BranchStep | None = Field(
        None,
        description="Run one of two lists of steps.",
        examples=[{"when": "severity >= high", "then": []}],
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
        """Longest time of one attempt."""
        return self.timeout or (DELIVERY_TIMEOUT if self.kind in _DELIVERIES else DEFAULT_TIMEOUT)


Steps = Annotated[tuple[StepDocument, ...], Field(strict=False, max_length=MAX_STEPS)]
Branch = Annotated[tuple[StepDocument, ...], Field(strict=False, min_length=1, max_length=MAX_STEPS)]
Branches = Annotated[tuple[Branch, ...], Field(strict=False, min_length=1, max_length=MAX_BRANCHES)]
BranchStep.model_rebuild()
StepDocument.model_rebuild()


def walk(steps: tuple[StepDocument, ...], path: Path = ("steps",)) -> Iterator[tuple[Path, StepDocument]]:
    """Every step with its path in the document, in the order of the text."""
    for number, step in enumerate(steps):
        step_path = (*path, number)
        yield step_path, step
        if step.branch is not None:
            yield from walk(step.branch.then, (*step_path, "branch", "then"))
            yield from walk(step.branch.else_, (*step_path, "branch", "else"))
        for branch_number, branch in enumerate(step.parallel or ()):
            yield from walk(branch, (*step_path, "parallel", branch_number))
