"""The keys of a check-in in a rule test."""

from typing import Annotated

from pydantic import Field

from schemas.documents.strict_model import StrictModel
from schemas.values.names import Name
from schemas.wire.check_in import MAX_LOG_LENGTH, MAX_RUN_LENGTH, Status


class CheckInKeys(StrictModel):
    """A job checks in to a heartbeat."""

    check_in: Name | None = Field(
        None, description="Heartbeat to which a job checks in.", examples=["nightly-backup"]
    )
    status: Status = Field("success", description="With `check_in`: its status.", examples=["start"])
    exit_code: Annotated[int, Field(ge=-(10**9), le=10**9)] | None = Field(
        None, description="With `check_in`: the exit code; 0 is a success.", examples=[1]
    )
    run_id: Annotated[str, Field(max_length=MAX_RUN_LENGTH)] = Field(
        "", description="With `check_in`: pairs the start and the end of a run.", examples=["a1"]
    )
    log: Annotated[str, Field(max_length=MAX_LOG_LENGTH)] = Field(
        "", description="With `check_in`: the end of the output.", examples=["disk full"]
    )
