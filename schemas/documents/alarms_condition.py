"""The key `alarms` of an event_rule: a condition over the states of other alarms of the same owner.

Guarantee: the condition names at least one alarm that must be open, so an owner without open alarms
never meets it. Each clause names a rule at most once. The loader looks for the rules and rejects
circles (`rules.documents.load.check_alarms`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Discriminator, Field, Tag, model_validator

from schemas.documents.strict_model import UNION_TAG, StrictModel, document_error
from schemas.values.rule_ref import ALARM_RULE_PATTERN

AlarmRule = Annotated[str, Field(pattern=ALARM_RULE_PATTERN)]
_MAX_REFERENCES = 32


class AlarmReference(StrictModel):
    """A rule, and the number of its alarms that must be open."""

    rule: AlarmRule = Field(
        description="Name of an event_rule, or `stale:<type>` for a datapoint_type with `on_stale: alarm`.",
        examples=["disk-full"],
    )
    at_least: Annotated[int, Field(ge=1, le=10_000)] = Field(
        1,
        description="Number of open alarms of the rule and the owner from which on the rule counts as open.",
        examples=[3],
    )


Reference = Annotated[
    Annotated[AlarmRule, Tag(f"{UNION_TAG}name")] | Annotated[AlarmReference, Tag(f"{UNION_TAG}reference")],
    Discriminator(lambda value: f"{UNION_TAG}{'name' if isinstance(value, str) else 'reference'}"),
]
References = Annotated[tuple[Reference, ...], Field(strict=False, max_length=_MAX_REFERENCES)]
CLAUSES = ("all_of", "any_of", "none_of", "of")


def as_reference(reference: str | AlarmReference) -> AlarmReference:
    return AlarmReference(rule=reference, at_least=1) if isinstance(reference, str) else reference


class AlarmsDocument(StrictModel):
    """Fires while every clause holds. A rule is open for an owner while it has an open alarm there."""

    all_of: References = Field(
        (), description="Rules that must all be open.", examples=[["pump-hot", "flow-low"]]
    )
    any_of: References = Field(
        (), description="Rules of which at least one must be open.", examples=[["pump-hot", "flow-low"]]
    )
    none_of: References = Field(
        (), description="Rules of which none may be open.", examples=[["pump-switched-off"]]
    )
    at_least: Annotated[int, Field(ge=1, le=_MAX_REFERENCES)] | None = Field(
        None, description="With `of`: number of its rules that must be open.", examples=[2]
    )
    of: References = Field(
        (), description="With `at_least`: the rules that are counted.", examples=[["a", "b", "c"]]
    )

    def clause(self, key: str) -> tuple[AlarmReference, ...]:
        """The references of one of `CLAUSES`."""
        return tuple(as_reference(reference) for reference in getattr(self, key))

    def references(self) -> Iterator[AlarmReference]:
        for key in CLAUSES:
            yield from self.clause(key)

    @model_validator(mode="after")
    def _counts_what_it_names(self) -> Self:
        if (self.at_least is None) != (not self.of):
            key, other = ("of", "at_least") if self.at_least is None else ("at_least", "of")
            raise document_error(f"has '{key}' without '{other}'", key)
        if self.at_least is not None and self.at_least > len(self.of):
            raise document_error(
                f"asks for {self.at_least} of {len(self.of)} rules: write at most {len(self.of)}", "at_least"
            )
        if not (self.all_of or self.any_of or self.of):
            raise document_error("needs 'all_of', 'any_of', or 'at_least' and 'of'")
        for key in CLAUSES:
            names = [reference.rule for reference in self.clause(key)]
            repeated = next((name for name in names if names.count(name) > 1), None)
            if repeated is not None:
                raise document_error(f"names '{repeated}' twice in '{key}': keep one", key)
        return self
