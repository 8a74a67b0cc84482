"""The texts that name things: schedules, rules, actions, event types and owners.

Guarantee: a name is 1 to 128 of `A-Z a-z 0-9 _ -`, so that it is one token of a subject without any
encoding. An owner is any text of at most 128 characters without NUL; it is encoded where it becomes a token.

On failure: an ordinary pydantic validation error, which the loader places in the file.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.values.rule_ref import ALARM_RULE_PATTERN

NAME_PATTERN = r"^[A-Za-z0-9_-]{1,128}$"
EVENT_TYPE_PATTERN = r"^[A-Za-z0-9_*-]{1,128}$"
"""Or some of them: `*` stands for any letters."""
TIME_OF_DAY_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"

HINTS = {
    NAME_PATTERN: "use letters, digits, '_' and '-', at most 128 of them",
    EVENT_TYPE_PATTERN: "use letters, digits, '_', '-' and '*', at most 128 of them",
    ALARM_RULE_PATTERN: "name an event_rule, or a datapoint_type, such as stale:load",
    TIME_OF_DAY_PATTERN: "write a time of day, such as 08:00",
}


def without_nul(text: str) -> str:
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{text!r} cannot be stored: leave out NUL and lone surrogates")
    return text


Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Owner = Annotated[str, Field(max_length=128), AfterValidator(without_nul)]
