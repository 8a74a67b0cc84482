"""The text of an alarm, as the author of a rule words it: `{{ owner }} is at {{ value }} {{ unit }}`.

Guarantee: a placeholder is a name of `MESSAGE_FIELDS`, or `labels.NAME`; a label that the series does not have is "".
Nothing is evaluated, and rendering never fails, so an alarm cannot be lost to its own text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

MESSAGE_FIELDS = ("rule", "severity", "owner", "key", "value", "unit", "threshold", "since", "labels")
_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)


def check_message(template: str) -> str:
    for found in _PLACEHOLDER.finditer(template):
        name, _, rest = found.group(1).partition(".")
        if name not in MESSAGE_FIELDS:
            near = difflib.get_close_matches(name, MESSAGE_FIELDS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"the names are {', '.join(MESSAGE_FIELDS)}"
            raise ValueError(f"unknown name '{name}' in '{found.group()}', {hint}")
        if bool(rest) != (name == "labels"):
            hint = "name one label, as in {{ labels.zone }}" if name == "labels" else f"'{name}' has no parts"
            raise ValueError(f"'{found.group()}' cannot be filled: {hint}")
    if "{{" in _PLACEHOLDER.sub("", template):
        raise ValueError(f"'{template}' has a '{{{{' without its '}}}}'")
    return template


def render_message(template: str, fields: Mapping[str, str], labels: Mapping[str, str]) -> str:
    def filled(found: re.Match[str]) -> str:
        name, _, rest = found.group(1).partition(".")
        return labels.get(rest, "") if rest else fields[name]

    return _PLACEHOLDER.sub(filled, template)


MessageTemplate = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(check_message)]
