"""What a change of the rules does to the alarms that hold: the one place that decides it. Pure.

Guarantee: a state whose conditions and timing stay as they are is left alone. Where they change, an open alarm is kept
until the new rule clears it, and everything else is judged anew from the next input. Where the rule is removed or
disabled, or no longer covers any series of the alarm, an open alarm is resolved with the reason and a pending one
never was. Nothing is left that no rule would ever end.

Deadlines that were decided (`watermark` of the partition) are realised first, at their nominal time. So
verdicts do not depend on how late the clock was, and a replay that calls `switch` at the same place of the
stream (`rules/apply/cutover.py`) comes to the same alarms.

An apply does it to what it finds (`rules/apply/alarms.py`). In the record lane records are judged by the rules of
their seq, which may be older than the apply: whoever drains that lane does it again when it passes the
`rules-applied` event (`Judgement.switch`).
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from rules.engine import CompiledRules, Effects, Rule, RuleState, adopt, advance, end


class Fate(NamedTuple):
    """What becomes of the states of a rule: they go on under `rule`, or they end."""

    rule: Rule | None
    reason: str = "rule-changed"
    why: str = "the rule was changed"


def fates(before: CompiledRules, after: CompiledRules) -> dict[str, Fate]:
    """By the name of every rule whose states do not simply go on."""
    found: dict[str, Fate] = {}
    for name, rule in before.rules.items():
        following = after.rules.get(name)
        if following is None and name in after.disabled:
            found[name] = Fate(None, "rule-disabled", "the rule was disabled")
        elif following is None:
            found[name] = Fate(None, "rule-removed", "the rule was removed")
        elif _lane(rule) != _lane(following):
            found[name] = Fate(None)
        elif rule.fingerprint != following.fingerprint:
            found[name] = Fate(following)
    return found


def judged_anew(before: CompiledRules, after: CompiledRules) -> frozenset[str]:
    """The rules over series that are new, or that judge in another way than before."""
    return frozenset(
        name
        for name, rule in after.rules.items()
        if _lane(rule) == "data"
        and ((known := before.rules.get(name)) is None or known.fingerprint != rule.fingerprint)
    )


def switch(
    state: RuleState, fate: Fate, watermark: datetime | None, at: datetime
) -> tuple[RuleState, Effects]:
    """Pure: a state at the moment when the rules change."""
    effects: Effects = ()
    if watermark is not None:
        state, effects = advance(state, watermark)
    # Arrivals are on another clock than applies, and no alarm ends before it opened.
    at = max(at, state.last_opened_at or at)
    if fate.rule is None:
        state, more = end(state, at, fate.reason, fate.why)
    else:
        state, more = adopt(fate.rule, state, at)
    return state, effects + more


def _lane(rule: Rule) -> str:
    return "data" if rule.document.event is None else "record"
