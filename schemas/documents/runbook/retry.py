"""How often a step is tried, and how long it waits in between.

Why five attempts that double from ten seconds: a restart of the other side is over by then. Jitter is on by default,
because what failed together must not come back together.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from schemas.values.duration import Duration


class Retries(BaseModel):
    """The delay before attempt n + 1 is `first` x `factor` to the power of n - 1, at most `longest`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    attempts: Annotated[int, Field(ge=1, le=100)] = Field(
        5, description="How often in all; 1 means that a failure is final.", examples=[5]
    )
    first: Duration = Field(
        timedelta(seconds=10), description="The delay before the second attempt.", examples=["10s"]
    )
    factor: Annotated[float, Field(ge=1, le=10)] = Field(
        2.0, description="By how much each delay is longer than the one before.", examples=[2]
    )
    longest: Duration = Field(
        timedelta(hours=1), description="No delay is longer than this.", examples=["1h"]
    )
    jitter: Annotated[float, Field(ge=0, le=1)] = Field(
        0.5,
        description="Up to this share of a delay is left out, by a stable hash of the attempt.",
        examples=[0.5],
    )
