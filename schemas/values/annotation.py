"""Texts of documents for people: a title, a description and the address of a runbook.

Guarantee: a title is one line, so that it fits the subject of a message. A runbook url is http or
https without credentials, so that a message can show it as a link.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.values.pydantic_check import pydantic_check
from schemas.values.web_address import check_url

MAX_TITLE_LENGTH = 120
MAX_DESCRIPTION_LENGTH = 1_000


def _check_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a title is one line of printable characters")
    return text


def _check_runbook_url(url: str) -> str:
    return check_url(url) if url else url


Title = Annotated[
    str,
    AfterValidator(_check_line),
    Field(
        max_length=MAX_TITLE_LENGTH,
        description="A name for people; messages and lists show it in place of `name`.",
        examples=["DSP overheats"],
    ),
]
Description = Annotated[
    str,
    Field(
        max_length=MAX_DESCRIPTION_LENGTH,
        description="A note for readers; messages about alarms show it.",
        examples=["The DSP stops at 90 °C."],
    ),
]
RunbookUrl = Annotated[
    str,
    AfterValidator(pydantic_check(_check_runbook_url)),
    Field(
        description="Address of the instructions for the people who are notified.",
        examples=["https://wiki.example.com/dsp-hot"],
    ),
]
