"""The `action` document: one response, or a runbook of steps.

Guarantee: exactly one response, or `steps`. `runbook` returns the steps to run in both cases.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from schemas.documents.runbook.step import MAX_STEPS, RESPONSES, Responses, StepDocument
from schemas.values.names import Name


class ActionDocument(Responses):
    """A named response that rules and schedules refer to."""

    kinds: ClassVar[tuple[str, ...]] = (*RESPONSES, "steps")

    name: Name = Field(description="Unique name of the action.", examples=["email-digest"])
    steps: (
        Annotated[tuple[StepDocument, ...], Field(strict=False, min_length=1, max_length=MAX_STEPS)] | None
    ) = Field(
        None,
        description="A runbook: steps that run one after the other.",
        examples=[[{"log": {"message": "{{ schedule }} fired"}}, {"wait": {"for": "10m"}}]],
    )

    def runbook(self) -> tuple[StepDocument, ...]:
        """The steps to run. A single response is a runbook of one step."""
        if self.steps is not None:
            return self.steps
        step = {key: getattr(self, key) for key in (self.kind, "retry", "timeout")}
        return (StepDocument.model_validate(step),)
