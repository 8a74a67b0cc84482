"""The `digest` step: lists of open alarms, events and stale series."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.strict_model import StrictModel
from schemas.fields import EVENT_FIELDS, PAYLOAD_FIELD, STEP_NAMES
from schemas.values.names import Name
from schemas.values.template_text import MAX_TEMPLATE_LENGTH, TemplateMark

Query = Literal["open_alarms", "events", "stale_series"]
QUERIES: tuple[Query, ...] = ("open_alarms", "events", "stale_series")
DIGEST_NAMES = (*QUERIES, "counts")

_NAMES = (*EVENT_FIELDS, *STEP_NAMES, *(name for name in DIGEST_NAMES if name not in STEP_NAMES))
_WITH_PARTS = (PAYLOAD_FIELD, *STEP_NAMES, *QUERIES, "counts")
_Length = Field(min_length=1, max_length=MAX_TEMPLATE_LENGTH)
DigestText = Annotated[str, TemplateMark("text", _NAMES, _WITH_PARTS), _Length]
DigestHtml = Annotated[str, TemplateMark("html", _NAMES, _WITH_PARTS), _Length]


class DigestStep(StrictModel):
    """Lists open alarms, events and stale series, and sends the list or keeps it as an answer."""

    queries: Annotated[tuple[Query, ...], Field(strict=False, min_length=1)] = Field(
        QUERIES,
        description="Lists to read: open alarms, events since the previous run, stale series.",
        examples=[["open_alarms"]],
    )
    limit: Annotated[int, Field(ge=1, le=1_000)] = Field(
        100, description="Largest number of rows of each list; `counts` has the totals.", examples=[100]
    )
    channel: Name | None = Field(
        None,
        description="Channel to send it through; without one, it is the answer of the step.",
        examples=["ops"],
    )
    subject: DigestText | None = Field(
        None, description="Subject, on one line.", examples=["{{ counts.open_alarms }} alarms are open"]
    )
    text: DigestText | None = Field(
        None,
        description="Body as text, over `open_alarms`, `events`, `stale_series`, `counts` and the names of all steps.",
        examples=["{% for alarm in open_alarms %}{{ alarm.rule }} of {{ alarm.owner }}\n{% endfor %}"],
    )
    html: DigestHtml | None = Field(
        None, description="Body as HTML; values are escaped.", examples=["<b>{{ counts.open_alarms }}</b>"]
    )
