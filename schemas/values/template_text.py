"""Types of the texts in documents that are templates, with the names that they may use.

Guarantee: the loader checks a field with one of these types: its syntax, its filters and its names,
with the position in the file. The schemas do not know the language.

Why a mark and not a validator: the language needs timezones, which are in a higher layer than the
schemas, and a mistake in a template has its own line and column inside the value.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, JsonValue

from schemas.fields import EVENT_FIELDS, MESSAGE_FIELDS, PAYLOAD_FIELD, STEP_NAMES
from schemas.values.json_shape import check_json_shape
from schemas.values.pydantic_check import pydantic_check

MAX_TEMPLATE_LENGTH = 20_000


@dataclass(frozen=True, slots=True)
class TemplateMark:
    part: Literal["text", "html", "subject"]
    names: tuple[str, ...] = (*EVENT_FIELDS, *STEP_NAMES)
    """Names that have a value when it is filled."""
    with_parts: tuple[str, ...] = (PAYLOAD_FIELD, *STEP_NAMES)
    """The names with parts, as in `payload.key`."""


Json = TypeVar("Json", dict[str, JsonValue], list[JsonValue])


def _check_json(value: Json) -> Json:
    check_json_shape(value)
    return value


TextTemplate = Annotated[str, TemplateMark("text"), Field(max_length=MAX_TEMPLATE_LENGTH)]
HtmlTemplate = Annotated[str, TemplateMark("html"), Field(max_length=MAX_TEMPLATE_LENGTH)]
SubjectTemplate = Annotated[str, TemplateMark("subject"), Field(min_length=1, max_length=255)]
MessageTemplate = Annotated[
    str,
    TemplateMark("text", MESSAGE_FIELDS, ("labels", PAYLOAD_FIELD)),
    Field(min_length=1, max_length=1_000),
]
JsonTemplate = Annotated[
    dict[str, JsonValue], TemplateMark("text"), AfterValidator(pydantic_check(_check_json))
]
ListTemplate = Annotated[list[JsonValue], TemplateMark("text"), AfterValidator(pydantic_check(_check_json))]
ValueTemplate = Annotated[str | int | float | bool, TemplateMark("text")]
