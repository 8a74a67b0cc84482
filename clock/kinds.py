"""The interface between the clock's loop and a timer kind.

Guarantee: the loop (`term`) owns what is the same for every kind: the transaction and its fence,
the turns, the marks, rows that fail, the wake-up and the backstop. A kind defines which rows are
due, what they become, and how that is written.

To add a kind:
1. Write a class with the four members of `TimerKind`, in the phases of every transaction: `lock`
   (one statement in `clock/sql`) and `plan` are about timers; `write` is about entities, in key
   order, and ends with exactly one `tocsin.append` with the epoch. Decisions are made by pure code.
2. List it in `clock/registry.py`. A kind that is not listed is not scanned.
3. Give it the race tests of the other kinds: a cancel against a fire, a row that another
   transaction has locked, a deposed clock.

A kind may hold rows: due, but not allowed to fire yet (the watermark lies before their deadline).
`lock` returns them with `held` set and without a lock. They are neither fired nor failed. The scan
passes over them, so rows behind them do not wait, and checks them again a moment later
(`clock/scan.py`).

On failure: an error of `lock`, `plan` or `write` for one row alone fails that row, never the kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypedDict, TypeVar

from tocsin.core.columns import plain_texts
from tocsin.core.db import Connection, statement


class Timer(Protocol):
    """The attributes of a locked row that the loop reads."""

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
        """A name for the log."""

    @property
    def held(self) -> bool:
        """Whether the row is due and not locked.

        It must not fire yet, or another transaction has it.
        """


class ScanBounds(TypedDict):
    """Named parameters of every `lock` statement.

    It returns the rows after (mark, mark_ref, mark_key) that are due at `now` and not parked, in
    the order (fire_at, ref, key). `limit` bounds the rows it walks over, held ones included: ten
    thousand held rows are ten short statements.
    """

    mark: datetime
    mark_ref: str
    mark_key: str
    now: datetime
    limit: int


@dataclass(slots=True)
class FiringPlan:
    """The decisions about a batch of locked rows. A kind adds what it needs to write them."""

    considered: int = 0
    """How many rows, counted from the first, are processed, failed or left alone. The others wait
    for the next turn."""
    processed: int = 0
    """How many rows were consumed or moved to their next time."""
    fires: int = 0
    """How many fires the processed rows became. A tick that catches up may fire several times."""
    failed: list[tuple[Any, str]] = field(default_factory=list)
    """(row, error) of rows that failed alone: they are retried later, and parked in the end."""

    @property
    def first_rearmed_at(self) -> datetime | None:
        """When the first of the moved rows is due."""
        return None

    @property
    def missed(self) -> int:
        """How many rows were recorded as missed."""
        return 0

    def due_s(self) -> list[float]:
        """When each fire was due, in seconds since 1970."""
        return []


Row = TypeVar("Row", bound=Timer)
Planned = TypeVar("Planned", bound=FiringPlan)


class TimerKind(Protocol[Row, Planned]):
    """One timer kind, as the loop calls it: `lock`, `plan` and `write` in one transaction."""

    @property
    def kind(self) -> str: ...

    async def lock(self, connection: Connection, bounds: ScanBounds) -> Sequence[Row]:
        """Return every due row within the bounds, oldest first.

        Rows that are not held are locked, with SKIP LOCKED.
        """

    async def plan(self, connection: Connection, rows: Sequence[Row], now: datetime) -> Planned:
        """Decide about the locked rows, in their order, and move or remove their timers."""

    async def write(self, connection: Connection, plan: Planned, now: datetime, epoch: int) -> None:
        """Write the plan.

        Ends with one `tocsin.append` that proves the epoch, even if nothing is appended.
        """


AnyTimerKind = TimerKind[Any, Any]


async def remove_timers(connection: Connection, ctids: Sequence[str]) -> None:
    """Delete timers that the transaction has locked."""
    if ctids:
        await connection.execute(statement("clock/remove_timers"), {"ctids": plain_texts(ctids)})
