"""Texts with `{{ path }}` placeholders over an event.

Guarantee: a placeholder is a dotted path that starts with a field of the event (`{{ schedule }}`,
`{{ payload.device.name }}`); nothing is ever evaluated. A text that is one placeholder and nothing
else yields the value with its JSON type; any other text yields text.

Why not a template engine: what may be written here is checked completely when the rule is loaded, and
a hostile payload is only ever a value.

On failure: an unknown field or a malformed placeholder is `InvalidInput` at load. Keys of
the payload are only known at run time: a missing one is `InvalidInput` then.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from schemas.event_fields import EVENT_FIELDS, PAYLOAD_FIELD
from tocsin.core.errors import InvalidInput

PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_-]+)*")


def check_placeholders(template: object) -> None:
    """Refuses, anywhere in a text, list or object, a placeholder that no event could fill."""
    if isinstance(template, dict):
        for member in template.values():
            check_placeholders(member)
    elif isinstance(template, list):
        for member in template:
            check_placeholders(member)
    elif isinstance(template, str):
        _check_text(template)


def fill(template: object, event: Mapping[str, object]) -> object:
    """The template with every placeholder replaced; lists and objects keep their shape."""
    if isinstance(template, dict):
        return {key: fill(member, event) for key, member in template.items()}
    if isinstance(template, list):
        return [fill(member, event) for member in template]
    if not isinstance(template, str):
        return template
    whole = PLACEHOLDER.fullmatch(template)
    if whole and "{{" not in whole.group(1):
        return _as_json(_value_at(whole.group(1).strip(), event))
    return fill_text(template, event)


def fill_text(template: str, event: Mapping[str, object]) -> str:
    return PLACEHOLDER.sub(lambda found: as_text(_value_at(found.group(1).strip(), event)), template)


def fill_subject(template: str, event: Mapping[str, object], encode: Callable[[str], str]) -> str:
    """Each value becomes what `encode` makes of it, so that no value can add a token or a wildcard."""
    return PLACEHOLDER.sub(lambda found: encode(as_text(_value_at(found.group(1).strip(), event))), template)


def as_text(value: object) -> str:
    value = _as_json(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _as_json(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value


def _check_text(template: str) -> None:
    for found in PLACEHOLDER.finditer(template):
        path = found.group(1).strip()
        if not _PATH.fullmatch(path):
            raise InvalidInput(
                f"'{found.group()}' is not a placeholder: write a dotted path such as {{{{ payload.key }}}}"
            )
        root, _, rest = path.partition(".")
        if root not in EVENT_FIELDS:
            near = difflib.get_close_matches(root, EVENT_FIELDS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"an event has {', '.join(EVENT_FIELDS)}"
            raise InvalidInput(f"unknown name '{root}' in '{found.group()}', {hint}")
        if rest and root != PAYLOAD_FIELD:
            raise InvalidInput(f"'{found.group()}' cannot be filled: '{root}' of an event has no parts")
    remainder = PLACEHOLDER.sub("", template)
    if "{{" in remainder:
        raise InvalidInput(f"'{template}' has a '{{{{' without its '}}}}'")


def _value_at(path: str, event: Mapping[str, object]) -> object:
    value: object = event
    for step, part in enumerate(path.split(".")):
        if not isinstance(value, Mapping) or part not in value:
            if step == 0 and part in EVENT_FIELDS:
                return ""
            raise InvalidInput(f"the event has no '{path}': the placeholder cannot be filled")
        value = value[part]
    return value
