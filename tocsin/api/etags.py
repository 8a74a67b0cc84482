"""ETags of things that are edited: the generation, and the condition under which an edit is made.

Guarantee: an edit names the version that its author has seen. Without `If-Match` it is 428; with
another version it is 412, and the problem has who changed it and when.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header

from tocsin.api.problems import ProblemRaised
from tocsin.core.errors import InvalidInput

_TAG = re.compile(r'\s*(?:W/)?"(?P<generation>[0-9]{1,18})"\s*')
IfMatch = Annotated[
    str | None,
    Header(alias="If-Match", max_length=200, description="ETag of the version that the edit is based on."),
]


def etag(generation: int) -> str:
    return f'"{generation}"'


def check_match(if_match: str | None, generation: int, *, changed: str = "") -> None:
    """Refuse an edit that is based on another version. `changed` has who changed it last, and when."""
    if if_match is None or not if_match.strip():
        raise ProblemRaised(
            "no-precondition",
            "the edit does not name the version that it is based on",
            remedy="send `If-Match` with the ETag that you read",
        )
    if if_match.strip() == "*":
        return
    if generation not in _generations(if_match):
        raise ProblemRaised(
            "changed",
            f"it has version {generation}, and the edit is based on {if_match.strip()}"
            + (f": {changed}" if changed else ""),
            remedy="read it again, and repeat the edit",
            headers={"etag": etag(generation)},
        )


def _generations(if_match: str) -> set[int]:
    matches = [_TAG.fullmatch(part) for part in if_match.split(",")]
    if not all(matches):
        raise InvalidInput(f"If-Match {if_match!r} has no ETag of this API", remedy='write it as "3"')
    return {int(match["generation"]) for match in matches if match}
