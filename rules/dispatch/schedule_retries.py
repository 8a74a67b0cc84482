"""The retry policy of a schedule, for the runs of its own action.

Guarantee: the policy is part of the run from its start: it is in the stored document of the action.
A later edit of the schedule changes later runs only. Runs that action_rules start keep the policy of
the action. The schedule is read when its event is dispatched, so a run that starts after an outage
has the policy of that moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rules.dispatch.matcher import Match
from rules.runbook.override_retry import override_retry
from schemas.values.rule_ref import RuleRef
from schemas.wire.event import Event
from tocsin.core.db import Connection, fetch_all


async def with_retries(
    connection: Connection, matches: Sequence[tuple[Event, Match]]
) -> list[tuple[Event, Match]]:
    own = {(event.owner, event.schedule) for event, match in matches if _is_own(match)}
    if not own:
        return list(matches)
    columns = {"owners": [owner for owner, _ in own], "names": [name for _, name in own]}
    rows = await fetch_all(connection, "rules.dispatch/read_retries", columns)
    retries = {(owner, name): retry for owner, name, retry in rows}
    return [
        (event, with_retry(match, retries.get((event.owner, event.schedule)))) for event, match in matches
    ]


def with_retry(match: Match, retry: Mapping[str, Any] | None) -> Match:
    """The match with the policy of its schedule, if the schedule itself names the action."""
    if retry is None or not _is_own(match):
        return match
    return replace(match, document=override_retry(match.document, retry))


def _is_own(match: Match) -> bool:
    return RuleRef.parse(match.rule).kind == "schedule"
