"""Finds the differences between two documents, by key path. Pure: no I/O.

Guarantee: if there are no differences, the documents are equal. Each difference is as deep as
possible, so that one changed word of a runbook is one line. Items of a list are matched by content
first: an item that was inserted in the middle is one difference, not one per item behind it.
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

    The index of an item is its index in the new list. A removed item has its index in the old list.
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
            child_path = f"{path}.{key}" if path else key
            yield from differences(old.get(key, ABSENT), new.get(key, ABSENT), child_path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_differences(old, new, path)
    # True == 1 in Python, but true and 1 are different values of a document.
    elif isinstance(old, bool) is not isinstance(new, bool) or old != new:
        yield FieldDifference(path, old, new)


def _list_differences(old: list[Any], new: list[Any], path: str) -> Iterator[FieldDifference]:
    matcher = SequenceMatcher(
        None, [_canonical_text(item) for item in old], [_canonical_text(item) for item in new], autojunk=False
    )
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            continue
        # Within a replaced range, the n-th old and the n-th new item are one changed item. The rest
        # were removed or added.
        paired = min(old_to - old_from, new_to - new_from)
        for offset in range(paired):
            yield from differences(
                old[old_from + offset], new[new_from + offset], f"{path}[{new_from + offset}]"
            )
        for index in range(old_from + paired, old_to):
            yield FieldDifference(f"{path}[{index}]", old[index], ABSENT)
        for index in range(new_from + paired, new_to):
            yield FieldDifference(f"{path}[{index}]", ABSENT, new[index])


def _canonical_text(item: Any) -> str:
    return json.dumps(item, sort_keys=True)
