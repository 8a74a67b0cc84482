"""Reads which alarms are open when an apply brings rules over alarms into force, or changes them.

Guarantee: the alarms are those that were open at the seq of the apply, in the order of the record
log, however far the other lanes have worked since. So a replay that has read the log up to that
seq knows the same alarms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from rules.engine import OpenAlarm, OpenAlarms, Rule
from tocsin.core.db import Connection, fetch_all


class RuleBegin(NamedTuple):
    """A rule over alarms, and what it reads of one owner."""

    rule: Rule
    input: OpenAlarms


async def read_rule_begins(
    connection: Connection, rules: Iterable[Rule], seq: int, at: datetime
) -> list[RuleBegin]:
    """What rules over alarms read at the apply of a seq, which was recorded at an instant.

    Owners that have a state and no open alarm are among them: the state may know alarms that were
    resolved while the rule did not refer to them.
    """
    by_name = {rule.name: rule for rule in rules}
    if not by_name:
        return []
    references = sorted({name for rule in by_name.values() for name in rule.references})
    opened: defaultdict[str, list[OpenAlarm]] = defaultdict(list)
    for name, owner, instance, since in await fetch_all(
        connection, "rules.alarms/list_alarms_open_at", {"rules": references, "seq": seq}
    ):
        opened[owner].append(OpenAlarm(name, instance, since))
    pairs = {
        (name, owner)
        for owner, alarms in opened.items()
        for name, rule in by_name.items()
        if any(alarm.rule in rule.references for alarm in alarms)
    }
    pairs.update(
        (name, owner)
        for name, owner in await fetch_all(
            connection, "rules.alarms/list_owners_with_state", {"rules": sorted(by_name)}
        )
    )
    return [
        RuleBegin(by_name[name], OpenAlarms(at, owner, tuple(opened.get(owner, ()))))
        for name, owner in sorted(pairs)
    ]
