"""The differences between two documents, by key path. Pure.

Guarantee: without differences the documents are equal. Each difference is as deep as possible, so
that one changed word of a runbook is one line. Items of a list are matched by content first: an
item that was inserted in the middle is one difference, not one per item behind it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, NamedTuple

ABSENT: Any = object()
"""The old value of an added field, and the new value of a removed one."""


class FieldDifference(NamedTuple):
    path: str
    """Such as `payload.report` or `steps[2].webhook.url`.

    An index is that of the new list; of a removed item, that of the old list.
    """
    old: Any
    new: Any

    def as_json(self) -> dict[str, Any]:
        """A JSON object without the absent side."""
        sides = {"old": self.old, "new": self.new}
        return {"path": self.path, **{side: value for side, value in sides.items() if value is not ABSENT}}


def differences(old: Any, new: Any, path: str = "") -> Iterator[FieldDifference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *(key for key in old if key not in new)]:
            below = f"{path}.{key}" if path else key
            yield from differences(old.get(key, ABSENT), new.get(key, ABSENT), below)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_differences(old, new, path)
    elif isinstance(old, bool) is not isinstance(new, bool) or old != new:
        # `true` equals 1 in Python, but is another value.
        yield FieldDifference(path, old, new)


def _list_differences(old: list[Any], new: list[Any], path: str) -> Iterator[FieldDifference]:
    matcher = SequenceMatcher(
        None, [_text(item) for item in old], [_text(item) for item in new], autojunk=False
    )
    for verb, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if verb == "equal":
            continue
        # Items at the same index are one changed item; the rest were added or removed.
        paired = min(old_to - old_from, new_to - new_from)
        for offset in range(paired):
            yield from differences(
                old[old_from + offset], new[new_from + offset], f"{path}[{new_from + offset}]"
            )
        for index in range(old_from + paired, old_to):
            yield FieldDifference(f"{path}[{index}]", old[index], ABSENT)
        for index in range(new_from + paired, new_to):
            yield FieldDifference(f"{path}[{index}]", ABSENT, new[index])


def _text(item: Any) -> str:
    return json.dumps(item, sort_keys=True)
