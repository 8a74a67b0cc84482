"""The `system` document: which series make up the health of something.

Guarantee: every member names one series by its `key`, or all that a `type` covers, of one owner; none is
named twice, and at least one is required. The loader looks for the types.
"""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from schemas.values.key_pattern import Key
from schemas.values.names import Name, Owner


class Member(BaseModel):
    """One series of a system."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    owner: Owner = Field(description="Whose series.", examples=["plant-7"])
    key: Key | None = Field(None, description="Its key.", examples=["dsp.temperature"])
    type: Name | None = Field(
        None, description="The datapoint_type that covers it, instead of a key.", examples=["dsp-temperature"]
    )
    required: bool = Field(
        True, description="false: its trouble degrades the system, and no more.", examples=[True]
    )

    @model_validator(mode="after")
    def _is_one_series(self) -> Self:
        if (self.key is None) == (self.type is None):
            text = (
                "a member needs 'key' or 'type'" if self.key is None else "a member has both 'key' and 'type'"
            )
            raise PydanticCustomError("one_of", "{text}", {"text": f"cannot be read: {text}"})
        return self


class SystemDocument(BaseModel):
    """Something whose health is that of its members."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Name = Field(description="Unique name of the system.", examples=["cooling"])
    description: str = Field("", description="For people.", examples=["hall 3"], max_length=1_000)
    members: Annotated[tuple[Member, ...], Field(strict=False, max_length=10_000)] = Field(
        description="The series that make up its health.",
        examples=[[{"owner": "plant-7", "key": "dsp.temperature"}]],
    )

    @model_validator(mode="after")
    def _names_each_member_once(self) -> Self:
        seen = set()
        for member in self.members:
            series = (member.owner, member.key, member.type)
            if series in seen:
                text = f"names the member {member.key or member.type} of {member.owner} twice"
                raise PydanticCustomError("one_of", "{text}", {"text": text, "at_key": "members"})
            seen.add(series)
        if not any(member.required for member in self.members):
            text = "has no required member, so its health would always be ok: add one"
            raise PydanticCustomError("one_of", "{text}", {"text": text, "at_key": "members"})
        return self
