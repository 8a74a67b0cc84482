"""How much an apply would do while the lanes are stopped.

Guarantee: an apply that would stop them for long is refused before it stops them, unless somebody wants it so. Alarms
that end, go on under changed rules or open at once are written in the apply's own transaction, because a rule set holds
as a whole or not at all; that takes about a third of a millisecond each.
"""

from __future__ import annotations

from rules.alarms.rule_change import rules_to_reevaluate
from rules.apply.impact import Decided
from tocsin.core.db import Connection, fetch_all, fetch_one
from tocsin.core.errors import Refused

MOST = 20_000
_EACH_S = 0.000_3


async def refuse_large(connection: Connection, decided: Decided) -> None:
    changes = await count_changes(connection, decided)
    if changes > MOST:
        raise Refused(
            f"this changes the alarms of {changes:,} owners and series at once, and datapoints would wait for about "
            f"{changes * _EACH_S:.0f} s",
            remedy="apply it in parts, or with --large when that does no harm",
        )


async def count_changes(connection: Connection, decided: Decided) -> int:
    """Alarms that are held by rules that change, and stale series that new rules hear of."""
    held = 0
    if decided.state_changes:
        given = {"rules": sorted(decided.state_changes)}
        row = await fetch_one(connection, "rules.apply/count_held_states", given)
        held = int(row[0]) if row else 0
    anew = rules_to_reevaluate(decided.before, decided.after)
    if not anew:
        return held
    stale = await fetch_all(connection, "rules.apply/count_stale_series")
    for key, count in stale:
        held += count * sum(rule.name in anew for rule in decided.after.for_key(key))
    return held
