"""Documents in force in a compiled form, read again when rules were applied.

Guarantee: a request sees rules that were applied at most `_KEPT_S` ago. Concurrent requests read once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from pydantic import BaseModel

from rules.documents.rule_book import RuleBook, RuleSet
from tocsin.api.context import ApiContext

_KEPT_S = 1.0
# Behind the seq of every apply.
_NEWEST = 2**62
Compiled = TypeVar("Compiled")


class AppliedRules(Generic[Compiled]):
    def __init__(
        self, compile: Callable[[RuleSet, Compiled | None], Compiled], *kinds: type[BaseModel]
    ) -> None:
        self._book: RuleBook[Compiled] = RuleBook(compile, *kinds)
        self._read_at_s = 0.0
        self._reading = asyncio.Lock()

    async def read(self, context: ApiContext) -> Compiled:
        async with self._reading:
            now_s = time.monotonic()
            if self._read_at_s == 0.0 or now_s > self._read_at_s + _KEPT_S:
                async with context.session() as connection:
                    await self._book.refresh(connection, _NEWEST)
                self._read_at_s = now_s
            return self._book.at(_NEWEST)

    def forget(self) -> None:
        """Read again at the next request, after an apply of this process."""
        self._read_at_s = 0.0
