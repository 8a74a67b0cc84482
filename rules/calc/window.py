"""Windows of calc_rules: which end when, and by which documents.

Guarantee: the windows of a rule end at whole multiples of `every` since 1970 UTC. A window is
calculated with the documents of the last apply that began before its end. An apply begins at the
most advanced watermark that it found, as for the health of systems (docs/decisions/0017). Later
applies begin at the same instant or later, so once all watermarks have passed the end of a window,
nothing can change which documents apply to it.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from rules.calc.rule import CalcRule
from rules.calc.rule_set import CalcRuleSet
from tocsin.core.instant import microseconds_of


class ApplyBegin(NamedTuple):
    """The beginning of an apply, before `period_begins` has put it in order."""

    rules_seq: int
    watermark: datetime | None
    """The most advanced watermark of the data lane; None if nothing had been read."""
    applied_at: datetime


class CalcPeriod(NamedTuple):
    """The documents from one apply to the next."""

    rules_seq: int
    begins: int
    """Microseconds since 1970. Windows that end later belong to this period."""
    rules: CalcRuleSet


class CalcWindow(NamedTuple):
    end: int
    period: CalcPeriod
    rules: Sequence[CalcRule]


def period_begins(applies: Iterable[ApplyBegin], not_before: int = 0) -> list[tuple[int, int]]:
    """(rules_seq, begin) of applies, which are given in their order. The begins never go back."""
    begins = []
    for apply in applies:
        not_before = max(not_before, microseconds_of(apply.watermark or apply.applied_at))
        begins.append((apply.rules_seq, not_before))
    return begins


def windows(periods: Sequence[CalcPeriod], after: int, before: int) -> Iterator[CalcWindow]:
    """The windows that end after `after` and before `before`, in order."""
    for number, period in enumerate(periods):
        last = before - 1
        if number + 1 < len(periods):
            last = min(last, periods[number + 1].begins)
        steps = {rule.every for rule in period.rules.rules}
        end = max(after, period.begins)
        while steps:
            end = min(_next_multiple(end, step) for step in steps)
            if end > last:
                break
            yield CalcWindow(end, period, [rule for rule in period.rules.rules if end % rule.every == 0])


def _next_multiple(after: int, step: int) -> int:
    return (after // step + 1) * step
