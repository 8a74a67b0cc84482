"""The `action` document: one response, or a runbook of steps.

Guarantee: exactly one response, or `steps`. `runbook` returns the steps to run in both cases.
`finally` has no step that waits without a bound: it has no `wait`.
"""

from typing import Annotated, ClassVar, Self

from pydantic import ConfigDict, Field, model_validator

from schemas.documents.runbook.step import MAX_STEPS, RESPONSES, Responses, StepDocument, walk
from schemas.documents.strict_model import document_error
from schemas.values.names import Name
from schemas.values.priority import Priority

MAX_FINALLY = 20


class ActionDocument(Responses):
    """A named response that rules and schedules refer to."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    kinds: ClassVar[tuple[str, ...]] = (*RESPONSES, "steps")

    name: Name = Field(description="Unique name of the action.", examples=["email-digest"])
    priority: Priority = Field(
        "normal",
        description="Which steps a worker performs first when more are due than it can perform: `high` before "
        "`normal` before `low`.",
        examples=["high"],
    )
    steps: (
        Annotated[tuple[StepDocument, ...], Field(strict=False, min_length=1, max_length=MAX_STEPS)] | None
    ) = Field(
        None,
        description="A runbook: steps that run one after the other.",
        examples=[[{"log": {"message": "{{ schedule }} fired"}}, {"wait": {"for": "10m"}}]],
    )
    finally_: (
        Annotated[tuple[StepDocument, ...], Field(strict=False, min_length=1, max_length=MAX_FINALLY)] | None
    ) = Field(
        None,
        alias="finally",
        description="Steps that run once when the run has ended or is cancelled, with the alarm as it is then. "
        "They cannot wait.",
        examples=[[{"publish": {"subject": "tickets.close"}}]],
    )

    @model_validator(mode="after")
    def _finally_does_not_wait(self) -> Self:
        for _, step in walk(self.finally_ or ()):
            if step.wait is not None:
                raise document_error("has 'wait' in 'finally', which must not wait: remove it", "finally")
        return self

    def runbook(self) -> tuple[StepDocument, ...]:
        """The steps to run. A single response is a runbook of one step."""
        if self.steps is not None:
            return self.steps
        step = {key: getattr(self, key) for key in (self.kind, "retry", "timeout")}
        return (StepDocument.model_validate(step),)
