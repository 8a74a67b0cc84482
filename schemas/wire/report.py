"""A report: the result of a dispatched message, on `report.<action id>.<step>.<token>`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

MAX_STEP = 10_000
MAX_ATTEMPT = 1_000_000
MAX_ERROR_LENGTH = 65_536


class Report(BaseModel):
    """A message that a service publishes on the subject in the header `Tocsin-Report` of a
    dispatched message."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    state: Literal["completed", "failed"]
    result: dict[str, JsonValue] = Field(
        default_factory=dict, description="Answer of the step for the steps after it; at most 64 kB."
    )
    error: str | None = Field(None, description="Why it failed; at most 64 kB.", max_length=MAX_ERROR_LENGTH)
    attempt: Annotated[int, Field(ge=1, le=MAX_ATTEMPT)] | None = Field(
        None,
        description="The header `Tocsin-Attempt`. A failure of an older attempt does not fail the newer one.",
    )
