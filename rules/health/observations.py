"""What is known about the owners of members: facts, each at its instant. Pure.

Guarantee: a fact depends on arrivals alone, like the verdict that it comes from. There are two kinds. A series is
fresh (it was seen for the first time, or again) or stale; the alarm of a rule is open and held by some series, or is
not. Facts about one series, or one rule, come in their order, with instants that never go back; between others only
the instant counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, NamedTuple

from rules.engine import RuleState, advance
from tocsin.core.records import NewCalculated

What = Literal["fresh", "stale", "alarm"]


class Held(NamedTuple):
    """An open alarm, and the series that hold it."""

    severity: int
    since: datetime
    keys: frozenset[str]


class Fact(NamedTuple):
    owner: str
    at: datetime
    what: What
    subject: str
    """The key of the series, or the event_rule."""
    held: Held | None = None
    """Of an alarm; None: it is not open."""

    def told(self) -> dict[str, Any]:
        """As `tocsin.append` takes it: plain JSON."""
        fact: dict[str, Any] = {
            "owner": self.owner,
            "at": self.at.isoformat(),
            "what": self.what,
            "subject": self.subject,
        }
        if self.held is not None:
            severity, since, keys = self.held
            fact |= {"severity": severity, "since": since.isoformat(), "keys": sorted(keys)}
        return fact


def held_by(state: RuleState) -> Held | None:
    if state.alarm is None or state.phase not in ("open", "clearing"):
        return None
    return Held(state.alarm.severity, state.alarm.since, state.holding)


def held_after(state: RuleState, decided: datetime | None) -> Held | None:
    """Once the sustain that is due by then has fired; None: nothing is decided."""
    return held_by(state if decided is None else advance(state, decided)[0])


def holding_facts(rule: str, owner: str, at: datetime, before: RuleState, after: RuleState) -> Iterator[Fact]:
    """What a turn of a rule's state at an instant says about its alarm: the deadline that it found due comes first."""
    if before.due_at is not None and before.due_at <= at:
        due_at, was = before.due_at, held_by(before)
        before, _ = advance(before, at)
        if held_by(before) != was:
            yield Fact(owner, due_at, "alarm", rule, held_by(before))
    if held_by(after) != held_by(before):
        yield Fact(owner, at, "alarm", rule, held_by(after))


def series_fact(one: NewCalculated) -> Fact:
    """Of a verdict about freshness."""
    return Fact(one.owner, one.ts, "stale" if one.kind == "stale" else "fresh", one.key)
