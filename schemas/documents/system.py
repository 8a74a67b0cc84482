"""The `system` document: a set of series with a common health.

Guarantee: every member is one series by its `key`, or all series of a `type`, of one owner. No
member is named twice, and at least one is required. The loader looks for the types.

A system is no member of another one. Its health is decided from all partitions and arrives later than
its instant, so the system above would lag behind and begin with a false alarm.
"""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from schemas.documents.strict_model import StrictModel, document_error
from schemas.values.key_pattern import Key
from schemas.values.names import Name, Owner
from schemas.wire.calculated import HEALTH_KEY


class Member(StrictModel):
    """A series, or all series of a type, that counts for the health of a system."""

    owner: Owner = Field(description="Owner of the series.", examples=["plant-7"])
    key: Key | None = Field(None, description="Key of the series.", examples=["dsp.temperature"])
    type: Name | None = Field(
        None,
        description="Name of a datapoint_type, for all its series, instead of a key.",
        examples=["dsp-temperature"],
    )
    required: bool = Field(
        True, description="false: the system is degraded at most if this member fails.", examples=[True]
    )

    @model_validator(mode="before")
    @classmethod
    def _is_no_system(cls, data: Any) -> Any:
        if isinstance(data, dict) and ("system" in data or data.get("key") == HEALTH_KEY):
            name = data.get("system", data.get("owner"))
            raise document_error(
                f"cannot have the system '{name}' as a member: name the series of '{name}' instead"
            )
        return data

    @model_validator(mode="after")
    def _is_one_series(self) -> Self:
        if (self.key is None) == (self.type is None):
            problem = "needs 'key' or 'type'" if self.key is None else "has both 'key' and 'type'"
            raise document_error(f"cannot be read: a member {problem}")
        return self


class SystemDocument(StrictModel):
    """A set of series whose health is computed from its members."""

    name: Name = Field(description="Unique name of the system.", examples=["cooling"])
    description: str = Field("", description="A note for readers.", examples=["hall 3"], max_length=1_000)
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
                name = member.key or member.type
                raise document_error(f"names the member {name} of {member.owner} twice", "members")
            seen.add(series)
        if not any(member.required for member in self.members):
            raise document_error(
                "has no required member, so its health would always be ok: add one", "members"
            )
        return self
