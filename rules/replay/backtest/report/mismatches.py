"""What was recorded and what is replayed, compared: nothing may differ (I5). Pure.

Every difference says what was recorded, what the replay concludes, and why they can differ.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rules.health.systems import HealthChange
from rules.replay.backtest.recording.model import Edge, OpenAlarm, Staleness
from schemas.wire.calculated import HEALTH_KEY
from tocsin.core.instant import instant_text

_LARGE = 2**63
_BEFORE = "was open before the replay begins, and what held it is not recorded"


class Difference(NamedTuple):
    owner: str
    at: datetime
    what: str
    """The alarm's rule, or the series."""
    recorded: str
    replayed: str
    cause: str


def compare_edges(
    recorded: Sequence[Edge], replayed: Sequence[Edge], begun_before: Sequence[OpenAlarm] = ()
) -> list[Difference]:
    """Of one owner."""
    then = {(one.alarm_id, one.edge): one for one in recorded}
    now = {(one.alarm_id, one.edge): one for one in replayed}
    before = {one.rule for one in begun_before}
    found = []
    for key in sorted({*then, *now}, key=str):
        was, is_ = then.get(key), now.get(key)
        one = was or is_
        assert one is not None
        if was is not None and is_ is not None and _told(was) == _told(is_):
            continue
        cause = _cause(was, is_, recorded, replayed)
        if one.rule in before:
            cause += f"; an alarm of the rule {_BEFORE}"
        found.append(Difference(one.owner, one.at, one.rule, _shown(was), _shown(is_), cause))
    return found


def compare_staleness(recorded: Sequence[Staleness], replayed: Sequence[Staleness]) -> list[Difference]:
    then, now = {_series(one): one for one in recorded}, {_series(one): one for one in replayed}
    found = []
    for key in sorted({*then, *now}):
        was, is_ = then.get(key), now.get(key)
        if was is not None and is_ is not None and _plain(was.value) == _plain(is_.value):
            continue
        one = was or is_
        assert one is not None
        if was is not None and is_ is not None:
            cause = f"the last value was {was.value!r}, replayed it is {is_.value!r}"
        elif is_ is None:
            cause = "the recorded arrivals and the tolerance of the time give no such verdict at this instant"
        else:
            cause = "the recorded arrivals and the tolerance of the time give it, and it was not recorded"
        found.append(Difference(one.owner, one.at, one.key, _verdict(was), _verdict(is_), cause))
    return found


def compare_health(
    recorded: Sequence[Staleness],
    replayed: Sequence[HealthChange],
    begun_before: Callable[[str], bool] = lambda system: False,
) -> list[Difference]:
    """Of all systems. An instant may have two verdicts: one before an apply, and one after it. `begun_before`: whether
    a member of the system had an alarm that was open when the replay begins."""
    then, now = (
        _numbered((one.owner, one.at, one.value) for one in recorded),
        _numbered((one.system, one.at, one.payload) for one in replayed),
    )
    found = []
    for key in sorted({*then, *now}):
        was, is_ = then.get(key), now.get(key)
        if was == is_:
            continue
        if was is None or is_ is None:
            cause = (
                "what was concluded about the members gives no such health at this instant"
                if is_ is None
                else "what was concluded about the members gives it, and it was not recorded"
            )
        else:
            cause = f"the same instant with another {', '.join(name for name in is_ if was.get(name) != is_[name])}"
        if begun_before(key[0]):
            cause += f"; an alarm of a member {_BEFORE}"
        found.append(Difference(key[0], key[1], HEALTH_KEY, _health(was), _health(is_), cause))
    return found


def within(edges: Iterable[Edge], since: datetime, until: dict[str, datetime]) -> list[Edge]:
    """Those in the window, as far as their lane is decided."""
    return [one for one in edges if since <= one.at <= until[one.lane]]


def _cause(was: Edge | None, is_: Edge | None, then: Sequence[Edge], now: Sequence[Edge]) -> str:
    if was is not None and is_ is not None:
        if was.at != is_.at:
            return "the same alarm at another instant"
        names = {*was.payload, *is_.payload}
        differ = [name for name in names if _plain(was.payload.get(name)) != _plain(is_.payload.get(name))]
        return f"the same edge with another {', '.join(sorted(differ)) or 'severity'}"
    one, others, who = (was, now, "the replay") if was is not None else (is_, then, "the record")
    assert one is not None
    near = min(
        (other for other in others if (other.rule, other.edge) == (one.rule, one.edge)),
        key=lambda other: abs(other.at - one.at),
        default=None,
    )
    if near is None:
        return f"{who} has no such edge of the rule for this owner"
    return f"the nearest that {who} has is at {instant_text(near.at)}"


def _told(one: Edge) -> object:
    return one.rule, one.at, one.severity, _plain(one.payload)


def _plain(value: Any) -> Any:
    """As it is after a way through the database: JSON, and a large number without its point."""
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    return float(value) if type(value) is int and abs(value) >= _LARGE else value


def _series(one: Staleness) -> tuple[str, datetime, str]:
    return one.key, one.at, one.kind


def _shown(one: Edge | None) -> str:
    if one is None:
        return "nothing"
    return f"{one.edge} {instant_text(one.at)}: {one.payload.get('message', json.dumps(one.payload))}"


def _numbered(told: Iterable[tuple[str, datetime, Any]]) -> dict[tuple[str, datetime, int], Any]:
    counts: Counter[tuple[str, datetime]] = Counter()
    found = {}
    for system, at, payload in told:
        found[system, at, counts[system, at]] = payload
        counts[system, at] += 1
    return found


def _health(one: Any) -> str:
    if one is None:
        return "nothing"
    members = ", ".join(
        f"{it['key'] or it['type']} of {it['owner']} {it['condition']}" for it in one["members"]
    )
    return " ".join(filter(None, (one["health"], one["reason"], members and f"({members})")))


def _verdict(one: Staleness | None) -> str:
    return "nothing" if one is None else f"{one.kind} {instant_text(one.at)}"
