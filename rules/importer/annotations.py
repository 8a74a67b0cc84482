"""Annotations of Prometheus alerts as templates. Pure.

`{{ $labels.x }}` and `{{ $value }}` are translated, and formatting filters of a value are left out. A
text with any other construct of Go's templates is not translated: the default message is better than
one with a wrong text in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_LABEL = re.compile(r"\$labels\.([A-Za-z_][A-Za-z0-9_]*)")
_VALUE = re.compile(
    r"(?:printf\s+\"[^\"]*\"\s+)?\$value(?:\s*\|\s*[A-Za-z0-9]+)*"
    r"|\$value(?:\s*\|\s*printf\s+\"[^\"]*\")"
)
_MAX_LENGTH = 500


def label_names(texts: Iterable[str]) -> set[str]:
    """The labels that annotations mention."""
    return {name for text in texts for name in _LABEL.findall(text)}


def message_template(text: str, owner_label: str) -> str | None:
    """A message with the same meaning; None if it has something that has no translation."""
    parts, end = [], 0
    for action in _ACTION.finditer(text):
        translated = _translated(action[1], owner_label)
        if translated is None:
            return None
        parts += [_plain(text[end : action.start()]), translated]
        end = action.end()
    message = " ".join("".join([*parts, _plain(text[end:])]).split())
    return message if len(message) <= _MAX_LENGTH and "{{" not in _ACTION.sub("", message) else None


def _translated(action: str, owner_label: str) -> str | None:
    label = _LABEL.fullmatch(action)
    if label is not None:
        return "{{ owner }}" if label[1] == owner_label else f"{{{{ labels.{label[1]} }}}}"
    return "{{ value }}" if _VALUE.fullmatch(action) else None


def _plain(text: str) -> str:
    """Text outside of actions, which must not look like one."""
    return text.replace("{%", "{ %").replace("{#", "{ #")
