"""A report: what came of a dispatched message, on `report.<action id>.<step>`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class Report(BaseModel):
    """What whoever took a dispatched message publishes on the subject in its header `Tocsin-Report`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    state: Literal["completed", "failed"]
    result: dict[str, JsonValue] = Field(
        default_factory=dict, description="What the steps after it see as its answer; at most 64 kB."
    )
    error: str | None = Field(None, description="Why it failed.")
    attempt: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="The header `Tocsin-Attempt`: a failure of an older attempt does not fail the newer one.",
    )
