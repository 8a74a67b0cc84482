"""Explains a rule over other alarms: the state of each rule that it refers to, for one owner.

Guarantee: every rule of the condition is named, with its pending and open alarms, or as not open.
Reads only. The alarms are those of now: the rule itself sees their transitions a moment later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rules.documents.compiled_rules import compiled_rule_book
from rules.documents.rule_book import newest_rules
from rules.engine import Rule
from tocsin.core.db import Connection, fetch_dicts
from tocsin.core.instant import instant_text

_SHOWN = 10


@dataclass(frozen=True)
class ReferencesExplanation:
    condition: str
    lines: tuple[str, ...]
    facts: list[dict[str, Any]]
    """One for each rule: its name, its state and the ids of its alarms."""


async def rule_over_alarms(connection: Connection, name: str) -> Rule | None:
    """The enabled rule of a name, if it is over alarms."""
    book, seq = compiled_rule_book(), await newest_rules(connection) + 1
    await book.refresh(connection, seq)
    rule = book.at(seq).rules.get(name)
    return None if rule is None or rule.composite is None else rule


async def explain_references(connection: Connection, rule: Rule, owner: str) -> ReferencesExplanation:
    assert rule.composite is not None
    names = sorted(rule.references)
    rows = await fetch_dicts(
        connection, "rules.alarms/list_referenced_alarms", {"rules": names, "owner": owner}
    )
    lines, facts = [], []
    for name in names:
        alarms = [row for row in rows if row["event_rule"] == name]
        opened = [row for row in alarms if row["state"] == "open"]
        state = "open" if opened else "pending" if alarms else "not open"
        facts.append({"rule": name, "state": state, "alarms": [str(row["id"]) for row in opened or alarms]})
        lines.append(f"{name} is {_state_text(state, opened or alarms)}")
    return ReferencesExplanation(rule.composite.text, tuple(lines), facts)


def _state_text(state: str, alarms: list[dict[str, Any]]) -> str:
    if not alarms:
        return state
    first = min(row["opened_at"] or row["since"] for row in alarms)
    shown = ", ".join(str(row["id"])[:8] for row in alarms[:_SHOWN])
    more = f" and {len(alarms) - _SHOWN} more" if len(alarms) > _SHOWN else ""
    return f"{state} since {instant_text(first)} ({shown}{more})"
