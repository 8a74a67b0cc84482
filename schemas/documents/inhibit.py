"""The `inhibit` document: open alarms that make other alarms notify no one.

Guarantee: the fields of `equal` exist. The loader compiles `source` and `target`.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.documents.strict_model import StrictModel
from schemas.values.names import Name

EQUAL_FIELDS = ("owner", "rule", "key", "instance", "severity")
_LABEL = re.compile(r"labels\.[^\0]+")


def _check_equal_field(field: str) -> str:
    if field not in EQUAL_FIELDS and not _LABEL.fullmatch(field):
        raise ValueError(f"'{field}' cannot be compared: use {', '.join(EQUAL_FIELDS)} or labels.<name>")
    return field


EqualField = Annotated[str, AfterValidator(_check_equal_field)]


class InhibitDocument(StrictModel):
    """Suppresses alarms that match `target` while an alarm that matches `source` is open."""

    name: Name = Field(description="Unique name.", examples=["behind-the-switch"])
    description: str = Field(
        "", description="A note for readers.", examples=["devices behind a switch"], max_length=1_000
    )
    source: str = Field(
        description="CEL condition over the alarm that suppresses others while it is open.",
        examples=['rule == "switch-down"'],
        max_length=MAX_CONDITION_LENGTH,
    )
    target: str = Field(
        description="CEL condition over the alarms that are suppressed.",
        examples=['rule != "switch-down"'],
        max_length=MAX_CONDITION_LENGTH,
    )
    equal: Annotated[tuple[EqualField, ...], Field(strict=False, max_length=16)] = Field(
        (),
        description="Fields in which both alarms must be equal: owner, rule, key, instance, severity, "
        "labels.<name>. A label that one of them does not have is not equal.",
        examples=[["labels.site"], ["owner"]],
    )
    enabled: bool = Field(True, description="false suppresses nothing.", examples=[True])
