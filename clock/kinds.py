"""What the clock asks of a kind of timer, so that one loop fires them all.

Guarantee: the loop (`term`) owns what is the same for every kind: the transaction and its fence, the turns, the marks,
poison, the wake-up and the backstop. A kind says which rows are due, what they become, and how that is written.

To add a kind:
1. Write an object with the four members of `Kind`, in the phases of every transaction: `lock`, one statement in
   `clock/sql`, and `settle` are about timers; `write` is about entities, in key order, then exactly one
   `tocsin.append` with the epoch. What is decided is decided by pure code.
2. List it in `clock/registry.py`. A kind that is not listed is not looked at.
3. Give it the race tests of DESIGN.md: a cancel against a fire, a row held by somebody, a deposed clock.

A kind may hold rows: due, but not allowed to fire yet (no verdict beyond what was read). `lock` returns them with
`held` set and without a lock. They are neither fired nor failed; the scan passes over them, so nothing behind them
waits, and looks at them again after a moment (`clock/scan.py`).

On failure: whatever `lock`, `settle` or `write` raises for one row alone sets that row aside, never the kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypedDict, TypeVar

from tocsin.core.columns import plain_texts
from tocsin.core.db import Connection, statement


class Timer(Protocol):
    """What the loop reads of a locked row; the rest of it is the kind's own."""

    @property
    def fire_at(self) -> datetime: ...
    @property
    def ref(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def name(self) -> str:
        """What a person calls it, for the log."""

    @property
    def held(self) -> bool:
        """Due and not locked: it must not fire yet, or somebody else has it."""


class Bounds(TypedDict):
    """Named parameters of every `lock` statement.

    The rows behind (mark, mark_ref, mark_key) that are due at `now` and not parked, in the order (fire_at, ref, key).
    `limit` bounds what is walked over, held rows included: ten thousand held rows are ten short statements.
    """

    mark: datetime
    mark_ref: str
    mark_key: str
    now: datetime
    limit: int


@dataclass(slots=True)
class Plan:
    """What a batch becomes; a kind adds the columns that it writes."""

    considered: int = 0
    """How many of the rows, from the first on, are settled, failed or left alone; the others wait for the next turn."""
    settled: int = 0
    fires: int = 0
    failed: list[tuple[Any, str]] = field(default_factory=list)
    """(row, error) of rows that are to blame themselves: they back off, and are parked in the end."""

    @property
    def first_rearmed_at(self) -> datetime | None:
        """When the first of the rows that were moved is due."""
        return None

    @property
    def missed(self) -> int:
        """How many rows were too late for what they were for."""
        return 0

    def due_s(self) -> list[float]:
        """When each of the fires was due, in seconds since 1970."""
        return []


Row = TypeVar("Row", bound=Timer)
Planned = TypeVar("Planned", bound=Plan)


class Kind(Protocol[Row, Planned]):
    @property
    def kind(self) -> str: ...

    async def lock(self, connection: Connection, bounds: Bounds) -> Sequence[Row]:
        """Every due row that was walked over, oldest first, locked with SKIP LOCKED unless it is held."""

    async def settle(self, connection: Connection, rows: Sequence[Row], now: datetime) -> Planned:
        """Decides about the locked rows, in their order, and moves or removes their timers."""

    async def write(self, connection: Connection, plan: Planned, now: datetime, epoch: int) -> None:
        """Ends with one `tocsin.append` that proves the epoch, even if there is nothing to append."""


AnyKind = Kind[Any, Any]


async def remove_timers(connection: Connection, ctids: Sequence[str]) -> None:
    """Consume rows that the transaction has locked."""
    if ctids:
        await connection.execute(statement("clock/remove_timers"), {"ctids": plain_texts(ctids)})
