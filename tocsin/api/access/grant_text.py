"""Grants as texts: `role:pattern`, such as `viewer:plant-*` or `operator:*`."""

from __future__ import annotations

import re

from tocsin.core.errors import InvalidInput
from tocsin.policy import AccessRole, Grant

_PATTERN = re.compile(r"[^*]{1,128}\*?|\*")


def parse_grant(text: str) -> Grant:
    """`InvalidInput` names what is wrong with the text."""
    role, colon, pattern = text.partition(":")
    if not colon or role not in set(AccessRole):
        raise InvalidInput(
            f"{text!r} is not a grant",
            remedy=f"write ROLE:OWNERS, such as viewer:plant-*; roles are {', '.join(AccessRole)}",
        )
    if not _PATTERN.fullmatch(pattern):
        raise InvalidInput(
            f"{pattern!r} in {text!r} is not a pattern of owners",
            remedy="write an owner, the beginning of owners followed by *, or * for all",
        )
    return Grant(AccessRole(role), pattern)


def grant_text(grant: Grant) -> str:
    return f"{grant.role}:{grant.pattern}"
