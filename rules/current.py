"""The rule book: which rules and actions hold for the event at a seq.

Guarantee: an event is judged by the versions that held at its seq, never by a mixture, however late it is
judged and whatever was applied meanwhile. Versions change only at the seq of a `rules-applied` event, so
between two such seqs one compiled index serves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from rules.expressions import Condition, RuleIndex, compile_event_condition
from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()


@dataclass(frozen=True)
class Match:
    """A rule that matched an event: the action to start, and its document."""

    rule: str
    action: str
    document: dict[str, Any]


@dataclass(frozen=True)
class _Version:
    kind: str
    name: str
    document: dict[str, Any]
    from_seq: int
    until_seq: int | None

    def holds_at(self, seq: int) -> bool:
        return self.from_seq < seq and (self.until_seq is None or seq <= self.until_seq)


@dataclass(frozen=True)
class _Page:
    """What holds between two applies."""

    index: RuleIndex
    rules: dict[str, dict[str, Any]]
    actions: dict[str, dict[str, Any]]


class RuleBook:
    def __init__(self) -> None:
        self._newest = -1
        self._oldest = 0
        self._versions: list[_Version] = []
        self._boundaries: list[int] = []
        self._pages: dict[int, _Page] = {}
        self._conditions: dict[tuple[str, str], Condition | None] = {}

    async def refresh(self, connection: Connection, oldest_seq: int) -> None:
        """Read what was applied since the last time; must be called before judging a batch."""
        row = await (await connection.execute(statement("rules/read_newest_version"))).fetchone()
        newest = int(row[0]) if row else 0
        if newest == self._newest and oldest_seq >= self._oldest:
            return
        rows = await (
            await connection.execute(statement("rules/list_versions"), {"after": oldest_seq - 1})
        ).fetchall()
        self._versions = [_Version(*row) for row in rows]
        self._boundaries = sorted(
            {version.from_seq for version in self._versions}
            | {version.until_seq for version in self._versions if version.until_seq is not None}
        )
        self._pages.clear()
        in_use = {(v.name, v.document["when"]) for v in self._versions if v.kind == "action_rule"}
        self._conditions = {key: condition for key, condition in self._conditions.items() if key in in_use}
        self._newest, self._oldest = newest, oldest_seq

    def judge(self, facts: Mapping[str, Any]) -> list[Match]:
        """The actions to start for an event: those of matching rules, and the schedule's own."""
        page = self._page(int(facts["seq"]))
        matches = [
            Match(rule, page.rules[rule]["action"], page.actions[page.rules[rule]["action"]])
            for rule in page.index.matching(facts)
            if page.rules[rule]["action"] in page.actions
        ]
        own = facts["action"] if facts["origin"] == "scheduled" else ""
        if own and own in page.actions:
            # No rule can have this name: it is not a safe token.
            matches.append(Match(f"schedule:{facts['schedule']}", own, page.actions[own]))
        elif own:
            _log.error("unknown action", schedule=facts["schedule"], action=own, seq=facts["seq"])
        return matches

    def _page(self, seq: int) -> _Page:
        place = bisect_left(self._boundaries, seq)
        page = self._pages.get(place)
        if page is None:
            page = self._pages[place] = self._compile(seq)
        return page

    def _compile(self, seq: int) -> _Page:
        holding = [version for version in self._versions if version.holds_at(seq)]
        rules = {v.name: v.document for v in holding if v.kind == "action_rule" and v.document["enabled"]}
        actions = {v.name: v.document for v in holding if v.kind == "action"}
        conditions = {
            name: condition
            for name, document in rules.items()
            if (condition := self._condition(name, document["when"])) is not None
        }
        return _Page(RuleIndex(conditions), rules, actions)

    def _condition(self, name: str, when: str) -> Condition | None:
        """Conditions were checked when they were applied. One that a newer engine refuses is set aside, and
        said: the other rules still hold."""
        if (name, when) not in self._conditions:
            try:
                self._conditions[name, when] = compile_event_condition(when, rule=name)
            except InvalidInput as error:
                _log.error("rule cannot be used", rule=name, when=when, error=error)
                self._conditions[name, when] = None
        return self._conditions[name, when]


async def known_names(connection: Connection) -> dict[str, frozenset[str]]:
    """Names per kind that are applied already, for checking references at load."""
    rows = await (await connection.execute(statement("rules/list_newest_documents"))).fetchall()
    names: dict[str, set[str]] = {}
    for kind, name, _, _, holds in rows:
        if holds:
            names.setdefault(kind, set()).add(name)
    return {kind: frozenset(of_kind) for kind, of_kind in names.items()}
