"""Limits what an apply may change while the lanes are blocked. The transaction of an apply calls
it.

Guarantee: an apply that would block the lanes for long is rejected before it blocks them, unless
the operator allows it. Alarms that end, continue under changed rules or open at once are written in
the transaction of the apply, because a rule set is in force as a whole or not at all. That takes
about a third of a millisecond for each.
"""

from __future__ import annotations

from rules.alarms.rule_change import rules_to_reevaluate
from rules.apply.impact import Impact
from tocsin.core.db import Connection, fetch_all, fetch_one
from tocsin.core.errors import Refused

MAX_STATE_CHANGES = 20_000
_EACH_S = 0.000_3


async def check_size(connection: Connection, impact: Impact) -> None:
    changes = await count_state_changes(connection, impact)
    if changes > MAX_STATE_CHANGES:
        raise Refused(
            f"this changes the alarms of {changes:,} owners and series at once, and datapoints would wait for about "
            f"{changes * _EACH_S:.0f} s",
            remedy="apply it in parts, or with --large when that does no harm",
        )


async def count_state_changes(connection: Connection, impact: Impact) -> int:
    """The alarms of rules that change, and the stale series that new rules evaluate."""
    count = 0
    if impact.state_changes:
        row = await fetch_one(
            connection, "rules.apply/count_alarm_states", {"rules": sorted(impact.state_changes)}
        )
        count = int(row[0]) if row else 0
    evaluated = rules_to_reevaluate(impact.before, impact.after)
    if not evaluated:
        return count
    for key, stale in await fetch_all(connection, "rules.apply/count_stale_series"):
        count += stale * sum(rule.name in evaluated for rule in impact.after.for_key(key))
    return count
