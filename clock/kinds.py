"""The interface between the clock's loop and a timer kind.

The loop (`clock/term.py`) does what is the same for every kind: it begins the transaction and checks
the epoch, gives each kind its turn, remembers how far it has scanned (mark), handles rows that
fail, sleeps until the next timer, and searches for late rows (backstop). A kind defines which rows
are due, what they become, and how that is written.

To add a kind:
1. Write a class with the four members of `TimerKind`. Its methods follow the lock order: `lock` (one
   statement in `clock/sql`) and `plan` touch timers only; `write` then touches entities in key
   order and ends with exactly one `tocsin.append` that has the epoch. Decisions are made by pure
   code.
2. List it in `clock/registry.py`. A kind that is not listed is not scanned.
3. Give it the race tests of the other kinds: a cancel against a fire, a row that another
   transaction has locked, a deposed clock.

`lock` may return held rows: due, but not locked, because they may not fire yet (such as: the
watermark lies before their deadline) or because another transaction has locked them. They are
neither fired nor failed. The scan passes over them, so rows behind them do not wait, and checks
them again a moment later (`clock/scan.py`).

On failure: if a row makes a batch fail, the batch is halved until that row is alone. The row is
marked as failed, and the kind continues.
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
        """Whether the row is due but was not locked.

        It may not fire yet, or another transaction has locked it.
        """


class ScanBounds(TypedDict):
    """Named parameters of every `lock` statement.

    It returns the rows after (mark, mark_ref, mark_key) that are due at `now` and not parked, in
    the order (fire_at, ref, key). `limit` bounds the rows it walks over, held ones included: ten
    thousand held rows are ten short statements with a limit of 1,000.
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
    """How many rows, counted from the first, are processed, failed or left unchanged. The others
    wait for the next turn."""
    processed: int = 0
    """How many rows were consumed or moved to their next time."""
    fires: int = 0
    """How many fires the processed rows became. A tick that catches up may fire several times."""
    failed: list[tuple[Any, str]] = field(default_factory=list)
    """(row, error) of rows that failed while the others did not: they are retried later, and parked
    in the end."""

    @property
    def first_rearmed_at(self) -> datetime | None:
        """When the first of the moved rows is due. Overridden by kinds that move rows."""
        return None

    @property
    def missed(self) -> int:
        """How many records of missed occurrences the processed rows became. Overridden by ticks."""
        return 0

    @property
    def due_times_s(self) -> list[float]:
        """When each fire was due, in seconds since 1970. Overridden by every kind."""
        return []


Row = TypeVar("Row", bound=Timer)
Planned = TypeVar("Planned", bound=FiringPlan)


class TimerKind(Protocol[Row, Planned]):
    """One timer kind, as the loop calls it: `lock`, `plan` and `write` in one transaction."""

    @property
    def kind(self) -> str: ...

    async def lock(self, connection: Connection, bounds: ScanBounds) -> Sequence[Row]:
        """Return the due rows within the bounds, oldest first.

        Locks the rows that may fire, and never waits for a lock.
        """

    async def plan(self, connection: Connection, rows: Sequence[Row], now: datetime) -> Planned:
        """Decide about the locked rows, in their order, and move or remove their timers."""

    async def write(self, connection: Connection, plan: Planned, now: datetime, epoch: int) -> None:
        """Write the plan.

        Ends with one `tocsin.append` that proves the epoch, even if nothing is appended.
        """


AnyTimerKind = TimerKind[Any, Any]


async def remove_timers(connection: Connection, ctids: Sequence[str]) -> None:
    """Delete timers that the transaction has locked. Used by every kind."""
    if ctids:
        await connection.execute(statement("clock/remove_timers"), {"ctids": plain_texts(ctids)})
