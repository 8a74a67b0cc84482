"""The `retry` key: number of attempts of a step, and the delays between them.

Why five attempts with delays that double from ten seconds: a restart of the other side takes less
time. Jitter is on by default, so that runs that failed together are not retried together.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from schemas.documents.strict_model import StrictModel
from schemas.values.duration import Duration


class RetryPolicy(StrictModel):
    """Attempts of a step. The delay before attempt n + 1 is `initial_interval` x `backoff`^(n - 1),
    at most `max_interval`."""

    attempts: Annotated[int, Field(ge=1, le=100)] = Field(
        5, description="Number of attempts in all; with 1, the first failure is final.", examples=[5]
    )
    initial_interval: Duration = Field(
        timedelta(seconds=10), description="The delay before the second attempt.", examples=["10s"]
    )
    backoff: Annotated[float, Field(ge=1, le=10)] = Field(
        2.0, description="Factor from one delay to the next.", examples=[2]
    )
    max_interval: Duration = Field(timedelta(hours=1), description="Longest delay.", examples=["1h"])
    jitter: Annotated[float, Field(ge=0, le=1)] = Field(
        0.5,
        description="Largest share of a delay that is left out; the share is a stable hash of the run and the attempt.",
        examples=[0.5],
    )
