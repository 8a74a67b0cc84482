"""The `action_rule` document: which events start which action.

Guarantee: names are safe tokens and `when` is at most 2,000 characters. The loader compiles `when` and
looks for the action, so that a rule that loads can run.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.names import Name

MAX_CONDITION_LENGTH = 2_000


class ActionRuleDocument(BaseModel):
    """Runs an action for each event that meets a condition."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Name = Field(description="Unique name of the rule.", examples=["digest"])
    on: Literal["event"] = Field(description="What the rule listens to.", examples=["event"])
    when: str = Field(
        description="CEL condition over the event; true starts the action.",
        examples=['origin == "scheduled" && schedule == "daily-digest"', "severity >= high"],
        max_length=MAX_CONDITION_LENGTH,
    )
    action: Name = Field(description="Name of the action to run.", examples=["email-digest"])
    enabled: bool = Field(True, description="false keeps the rule, and it matches nothing.", examples=[True])
