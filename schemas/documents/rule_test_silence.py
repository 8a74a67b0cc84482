"""The silence that an operator adds in a rule test."""

from pydantic import Field

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.documents.strict_model import StrictModel
from schemas.fields import MAX_REASON_LENGTH
from schemas.values.duration import Duration


class SilenceInput(StrictModel):
    """A silence that an operator adds."""

    where: str = Field(
        description="CEL condition over an alarm.",
        examples=['labels.site == "ams"'],
        max_length=MAX_CONDITION_LENGTH,
    )
    for_: Duration = Field(alias="for", description="The duration, at most 366d.", examples=["2h"])
    reason: str = Field("", description="Why.", examples=["new switch"], max_length=MAX_REASON_LENGTH)
