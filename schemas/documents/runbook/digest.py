"""The `digest` step: sums over the alarms of a period, and lists of alarms, events, series and runs."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.documents.strict_model import StrictModel
from schemas.fields import EVENT_FIELDS, PAYLOAD_FIELD, STEP_NAMES
from schemas.values.names import Name
from schemas.values.template_text import MAX_TEMPLATE_LENGTH, TemplateMark

Query = Literal["summary", "open_alarms", "events", "stale_series", "undelivered", "dead_runs"]
QUERIES: tuple[Query, ...] = (
    *("summary", "open_alarms", "events", "stale_series", "undelivered", "dead_runs"),
)
DEFAULT_QUERIES: tuple[Query, ...] = ("summary", "open_alarms", "stale_series", "undelivered", "dead_runs")
DIGEST_NAMES = (*QUERIES, "noisiest_owners", "period", "counts")

_NAMES = (*EVENT_FIELDS, *STEP_NAMES, *(name for name in DIGEST_NAMES if name not in STEP_NAMES))
_WITH_PARTS = (PAYLOAD_FIELD, *STEP_NAMES, *DIGEST_NAMES)
_Length = Field(min_length=1, max_length=MAX_TEMPLATE_LENGTH)
DigestText = Annotated[str, TemplateMark("text", _NAMES, _WITH_PARTS), _Length]
DigestHtml = Annotated[str, TemplateMark("html", _NAMES, _WITH_PARTS), _Length]


class DigestStep(StrictModel):
    """Sums up the alarms since the previous digest, and sends the result or keeps it as an answer."""

    queries: Annotated[tuple[Query, ...], Field(strict=False, min_length=1)] = Field(
        DEFAULT_QUERIES,
        description="Parts of the digest: the summary of each rule, open alarms, events, stale series, "
        "undelivered notifications, dead runs.",
        examples=[["summary", "open_alarms"]],
    )
    where: Annotated[str, Field(max_length=MAX_CONDITION_LENGTH)] | None = Field(
        None,
        description="CEL over rule, owner, key, instance, labels, severity, title and type (of an event); only what "
        "matches is in the digest.",
        examples=['severity >= high && labels.site == "ams"', 'owner.startsWith("plant-")'],
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
        description="Body as text, over the parts, `noisiest_owners`, `period`, `counts` and the names of all steps.",
        examples=["{% for alarm in open_alarms %}{{ alarm.rule }} of {{ alarm.owner }}\n{% endfor %}"],
    )
    html: DigestHtml | None = Field(
        None, description="Body as HTML; values are escaped.", examples=["<b>{{ counts.open_alarms }}</b>"]
    )
