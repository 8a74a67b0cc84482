"""Checks the hash chain of the audit.

Guarantee: `verify_chain` reports every chained row that was changed or removed otherwise than by
retention or `tocsin forget`, and every link that was changed, removed or inserted. It computes the hashes itself, with
built-in functions of Postgres only.

What it cannot detect: the removal of the newest links together with their rows, or a chain that was
computed again as a whole. Both need the owner of the schema. Keep the head (`position` and `hash`) outside
of the database and compare it: `tocsin audit verify --head POSITION:HASH`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from tocsin.core.db import Connection, fetch_all, fetch_value

_CHUNK = 10_000
_MAX_PROBLEMS = 100


@dataclass
class ChainReport:
    """The result of a check."""

    checked: int = 0
    unsealed: int = 0
    """Rows that are too new to be chained."""
    position: int = 0
    """The position of the last link; with `hash` the head of the chain."""
    hash: str = ""
    problems: list[str] = field(default_factory=list)


async def verify_chain(
    connection: Connection, head: tuple[int, str] | None = None, newest: int | None = None
) -> ChainReport:
    """Check the chain, or its `newest` links.

    `head` is the position and the hash that an earlier check returned.
    """
    report = ChainReport(unsealed=int(await fetch_value(connection, "tocsin.core/count_unsealed")))
    if newest is not None:
        last = int(await fetch_value(connection, "tocsin.core/read_last_seal"))
        report.position = max(last - newest, 0)
    previous: bytes | None = None
    seen_head = head is None
    while chunk := await fetch_all(
        connection, "tocsin.core/list_seals", {"after": report.position, "limit": _CHUNK}
    ):
        for position, audit_id, digest, before, link, is_pruned, present, erased in chunk:
            if previous is not None and position != report.position + 1:
                _add(report, f"links {report.position + 1} to {position - 1} are missing")
            if previous is not None and bytes(before) != previous:
                _add(report, f"link {position} does not follow the one before it")
            if hashlib.sha256(bytes(before) + bytes(digest)).digest() != bytes(link):
                _add(report, f"link {position} was changed")
            if present is None and not is_pruned:
                _add(report, f"row {audit_id} of the audit is missing")
            if present is not None and bytes(present) != bytes(erased or digest):
                _add(report, f"row {audit_id} of the audit was changed")
            if head is not None and position == head[0]:
                seen_head = bytes(link).hex() == head[1].lower()
            previous, report.position, report.hash = bytes(link), position, bytes(link).hex()
            report.checked += 1
    if not seen_head and head is not None:
        _add(report, f"the chain does not have the hash {head[1]} at position {head[0]}")
    return report


def _add(report: ChainReport, problem: str) -> None:
    if len(report.problems) < _MAX_PROBLEMS:
        report.problems.append(problem)
