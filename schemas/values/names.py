"""Names of documents and event types, and owners.

Guarantee: a name has 1 to 128 of `A-Z a-z 0-9 _ -`, so it is one token of a subject without
encoding. An owner is any text of at most 128 characters without NUL; it is encoded in a subject.

On failure: an ordinary pydantic validation error, to which the loader adds the position in the
file.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.values.rule_ref import ALARM_RULE_PATTERN

MAX_OWNER_LENGTH = 128
NAME_PATTERN = r"^[A-Za-z0-9_-]{1,128}$"
EVENT_TYPE_PATTERN = r"^[A-Za-z0-9_*-]{1,128}$"
"""A name, or a pattern in which `*` stands for any characters."""
TIME_OF_DAY_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"

HINTS = {
    NAME_PATTERN: "use letters, digits, '_' and '-', at most 128 of them",
    EVENT_TYPE_PATTERN: "use letters, digits, '_', '-' and '*', at most 128 of them",
    ALARM_RULE_PATTERN: "name an event_rule, or a datapoint_type, such as stale:load",
    TIME_OF_DAY_PATTERN: "write a time of day, such as 08:00",
}


def check_storable(text: str) -> str:
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{text!r} cannot be stored: leave out NUL and lone surrogates")
    return text


Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Owner = Annotated[str, Field(max_length=MAX_OWNER_LENGTH), AfterValidator(check_storable)]
