"""Which texts of a document are templates, and what they may name.

Guarantee: a field with one of these types is checked by the loader: its syntax, its filters and its
names, with the place in the file. The schema itself does not know the language.

Why a mark and not a validator: the language needs timezones, which lie above the schemas, and a mistake in
a template has a line and a column of its own inside the value.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, JsonValue

from schemas.fields import EVENT_FIELDS, MESSAGE_FIELDS, PAYLOAD_FIELD, STEP_NAMES
from schemas.values.json_shape import check_json_shape
from tocsin.core.errors import InvalidInput

MAX_TEMPLATE_LENGTH = 20_000


@dataclass(frozen=True, slots=True)
class TemplateMark:
    part: Literal["text", "html", "subject"]
    names: tuple[str, ...] = (*EVENT_FIELDS, *STEP_NAMES)
    """What is known when it is filled."""
    with_parts: tuple[str, ...] = (PAYLOAD_FIELD, *STEP_NAMES)
    """Those of the names that have parts, as in `payload.key`."""


Json = TypeVar("Json", dict[str, JsonValue], list[JsonValue])


def _plain_json(value: Json) -> Json:
    try:
        check_json_shape(value)
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    return value


TextTemplate = Annotated[str, TemplateMark("text"), Field(max_length=MAX_TEMPLATE_LENGTH)]
HtmlTemplate = Annotated[str, TemplateMark("html"), Field(max_length=MAX_TEMPLATE_LENGTH)]
SubjectTemplate = Annotated[str, TemplateMark("subject"), Field(min_length=1, max_length=255)]
MessageTemplate = Annotated[
    str, TemplateMark("text", MESSAGE_FIELDS, ("labels",)), Field(min_length=1, max_length=1_000)
]
JsonTemplate = Annotated[dict[str, JsonValue], TemplateMark("text"), AfterValidator(_plain_json)]
ListTemplate = Annotated[list[JsonValue], TemplateMark("text"), AfterValidator(_plain_json)]
ValueTemplate = Annotated[str | int | float | bool, TemplateMark("text")]
