"""Steps that look at something: a service from outside, or what there is to tell."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.documents.probe import Probe
from schemas.fields import EVENT_FIELDS, PAYLOAD_FIELD, STEP_NAMES
from schemas.values.names import Name
from schemas.values.template_text import MAX_TEMPLATE_LENGTH, TemplateMark, TextTemplate

Query = Literal["open_alarms", "events", "stale_series"]
QUERIES: tuple[Query, ...] = ("open_alarms", "events", "stale_series")
DIGEST_NAMES = (*QUERIES, "counts")

_NAMES = (*EVENT_FIELDS, *STEP_NAMES, *(name for name in DIGEST_NAMES if name not in STEP_NAMES))
_WITH_PARTS = (PAYLOAD_FIELD, *STEP_NAMES, *QUERIES, "counts")
_Length = Field(min_length=1, max_length=MAX_TEMPLATE_LENGTH)
DigestText = Annotated[str, TemplateMark("text", _NAMES, _WITH_PARTS), _Length]
DigestHtml = Annotated[str, TemplateMark("html", _NAMES, _WITH_PARTS), _Length]


class ProbeStep(Probe):
    """Looks at a service from outside, and writes what it found as datapoints: `<key>` (true or false) and
    `<key>.latency_ms`."""

    key: Annotated[TextTemplate, Field(min_length=1)] = Field(
        description="Key of the series; its dots are levels.", examples=["shop.up"]
    )
    owner: TextTemplate = Field(
        "{{ owner }}", description="Owner of the series; the event's by default.", examples=["shop"]
    )


class DigestStep(BaseModel):
    """Gathers what there is to tell, and sends it through a channel or keeps it as an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    queries: Annotated[tuple[Query, ...], Field(strict=False, min_length=1)] = Field(
        QUERIES,
        description="What to look up: open alarms, events since the action ran last, series that are stale.",
        examples=[["open_alarms"]],
    )
    limit: Annotated[int, Field(ge=1, le=1_000)] = Field(
        100, description="At most this many rows of each; `counts` has all of them.", examples=[100]
    )
    channel: Name | None = Field(
        None,
        description="Channel to send it through; without one, it is the step's answer.",
        examples=["ops"],
    )
    subject: DigestText | None = Field(
        None, description="Subject, on one line.", examples=["{{ counts.open_alarms }} alarms are open"]
    )
    text: DigestText | None = Field(
        None,
        description="Body as text, over `open_alarms`, `events`, `stale_series`, `counts` and all that steps know.",
        examples=["{% for one in open_alarms %}{{ one.rule }} of {{ one.owner }}\n{% endfor %}"],
    )
    html: DigestHtml | None = Field(
        None, description="Body as HTML; values are escaped.", examples=["<b>{{ counts.open_alarms }}</b>"]
    )
