"""The `probe` step: a check of a service from outside."""

from typing import Annotated

from pydantic import Field

from schemas.documents.probe import Probe
from schemas.values.template_text import TextTemplate


class ProbeStep(Probe):
    """Checks a service from outside, and writes the result as datapoints: `<key>` (true or false)
    and `<key>.latency_ms`."""

    key: Annotated[TextTemplate, Field(min_length=1)] = Field(
        description="Key of the series; its dots are levels.", examples=["shop.up"]
    )
    owner: TextTemplate = Field(
        "{{ owner }}", description="Owner of the series; the event's by default.", examples=["shop"]
    )
