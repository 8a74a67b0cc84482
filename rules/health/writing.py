"""Members as rows, for those who write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rules.health.members import MemberRow


def member_columns(rows: Sequence[MemberRow]) -> dict[str, list[Any]]:
    return {
        "systems": [row.system for row in rows],
        "owners": [row.owner for row in rows],
        "keys": [row.key for row in rows],
        "types": [row.type for row in rows],
        "required": [row.required for row in rows],
        "covered": [row.covered for row in rows],
    }
