"""What changed between two documents, key path by key path. Pure.

Guarantee: no difference means that the documents say the same; each difference is as deep as possible, so that one
changed word of a runbook is one line. Items of a list are matched by content first: an item that was put in
the middle is one difference, not one per item behind it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, NamedTuple

ABSENT: Any = object()
"""The old value of what was added, and the new one of what was removed."""


class Difference(NamedTuple):
    path: str
    """Such as `payload.report` or `steps[2].webhook.url`; an index is that of the new list, of a removed item that of
    the old one."""
    old: Any
    new: Any

    def as_json(self) -> dict[str, Any]:
        """Without the side that is absent."""
        sides = {"old": self.old, "new": self.new}
        return {"path": self.path, **{side: value for side, value in sides.items() if value is not ABSENT}}


def differences(old: Any, new: Any, path: str = "") -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*new, *(key for key in old if key not in new)]:
            below = f"{path}.{key}" if path else key
            yield from differences(old.get(key, ABSENT), new.get(key, ABSENT), below)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _of_lists(old, new, path)
    elif isinstance(old, bool) is not isinstance(new, bool) or old != new:
        # `true` is no number, although Python takes it for 1.
        yield Difference(path, old, new)


def _of_lists(old: list[Any], new: list[Any], path: str) -> Iterator[Difference]:
    matcher = SequenceMatcher(
        None, [_text(item) for item in old], [_text(item) for item in new], autojunk=False
    )
    for verb, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if verb == "equal":
            continue
        # What stands in the same place is the same item, changed; the rest came or went.
        paired = min(old_to - old_from, new_to - new_from)
        for offset in range(paired):
            yield from differences(
                old[old_from + offset], new[new_from + offset], f"{path}[{new_from + offset}]"
            )
        for place in range(old_from + paired, old_to):
            yield Difference(f"{path}[{place}]", old[place], ABSENT)
        for place in range(new_from + paired, new_to):
            yield Difference(f"{path}[{place}]", ABSENT, new[place])


def _text(item: Any) -> str:
    return json.dumps(item, sort_keys=True)
