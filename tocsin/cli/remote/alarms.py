"""Alarms, silences and notifications over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from clock.time_source import wall_now
from rules.alarms.matching_alarms import compile_where
from rules.alarms.notifications import STATES as NOTIFICATION_STATES
from rules.alarms.operator import OperatorResult
from rules.suppression import matched_alarm
from tocsin.cli.alarms.many import Outcomes, future_instant
from tocsin.cli.remote.api_client import ApiClient, Row
from tocsin.core.errors import InvalidInput
from tocsin.core.id_prefix import IdPrefix

if TYPE_CHECKING:
    from rules.suppression.silence_store import NewSilence

_MOST = 100_000
_SILENCE = (
    *("id", "matcher", "starts_at", "ends_at", "reason", "created_by", "created_via", "created_at"),
    *("source", "ended_at"),
)
_COLUMNS = (
    *("id", "event_rule", "owner", "instance", "state", "severity", "since", "opened_at", "resolved_at"),
    *("resolved_reason", "payload", "correlation_id", "source_event_id", "acknowledged_at"),
    *("acknowledged_by", "acknowledged_note", "snoozed_until", "snoozed_by"),
)


def _row(item: Row) -> Row:
    """The row of an alarm as the database has it, and its suppression."""
    renamed = {**item, "event_rule": item["rule"], "severity": item["level"]}
    suppression = {name: item[name] for name in ("suppressed_by", "suppressed_because")}
    return {**{name: renamed[name] for name in _COLUMNS}, **suppression}


async def list_alarms(
    api: ApiClient,
    states: tuple[str, ...],
    rule: str | None,
    owner: str | None,
    severity: str | None,
    limit: int,
) -> tuple[datetime, list[Row]]:
    state = {1: states[0], 2: "active"}.get(len(states), "all")
    items = await api.items(
        "/v1/alarms", limit, state=state, rule=rule, owner=owner, severity=severity, sort="severity"
    )
    rows = []
    for item in items:
        row = _row(item)
        marks = {
            "suppressed_by": row.pop("suppressed_by"),
            "suppressed_because": row.pop("suppressed_because"),
        }
        rows.append({**row, "severity": item["severity"], "level": item["level"], **marks})
    return wall_now(), rows


async def choose(api: ApiClient, ids: Sequence[str], where: str | None) -> list[Row]:
    if where is not None:
        return await matching(api, where, ("open",))
    found = [await _find(api, text) for text in ids]
    return list({row["id"]: row for row in found}.values())


async def matching(api: ApiClient, where: str, states: Sequence[str]) -> list[Row]:
    matcher = compile_where(where)
    state = states[0] if len(states) == 1 else "active"
    rows = [_row(item) for item in await api.items("/v1/alarms", _MOST, state=state, sort="severity")]
    return [row for row in rows if matcher.matches(matched_alarm(row).fields)]


async def _find(api: ApiClient, text: str) -> Row:
    prefix = IdPrefix(text, "alarm", "tocsin alarms --state all")
    prefix.bounds()
    return _row(prefix.only(await api.items("/v1/alarms", 2, state="all", id=text)))


async def acknowledge(api: ApiClient, ids: list[str], where: str | None, note: str, who: str) -> Outcomes:
    async def change(row: Row) -> tuple[Row, OperatorResult]:
        answer = await api.write(f"/v1/alarms/{row['id']}:ack", {"note": note})
        return await _find(api, str(row["id"])), _result(answer)

    return await Outcomes("acknowledged").act(await choose(api, ids, where), change)


async def resolve(api: ApiClient, ids: list[str], where: str | None, note: str, who: str) -> Outcomes:
    async def change(row: Row) -> OperatorResult:
        return _result(await api.write(f"/v1/alarms/{row['id']}:resolve", {"note": note}))

    return await Outcomes("resolved").act(await choose(api, ids, where), change)


async def snooze(
    api: ApiClient,
    choice: tuple[list[str], str | None],
    duration: str | None,
    until: str | None,
    tz: str,
    who: str,
) -> Outcomes:
    from schemas.values.duration import parse_duration

    now = wall_now()
    ends_at = None if until is None else future_instant(until, tz, now)
    if duration is not None:
        ends_at = now + parse_duration(duration)
    body = {} if ends_at is None else {"until": ends_at.isoformat()}

    async def change(row: Row) -> tuple[datetime | None, OperatorResult]:
        return ends_at, _result(await api.write(f"/v1/alarms/{row['id']}:snooze", body))

    rows = await choose(api, *choice)
    return await Outcomes("snoozed" if ends_at else "unsnoozed").act(rows, change)


def _result(answer: Row) -> OperatorResult:
    return OperatorResult(answer["changed"], answer["seq"])


async def list_notifications(
    api: ApiClient, state: str | None, channel: str | None, limit: int
) -> tuple[datetime, list[Row]]:
    if state not in (None, *NOTIFICATION_STATES):
        raise InvalidInput(f"unknown state {state!r}", remedy=f"use one of {', '.join(NOTIFICATION_STATES)}")
    rows = await api.items("/v1/notifications", min(limit, 500), state=state, channel=channel)
    return wall_now(), rows


Times = tuple[str | None, str | None, str | None]


async def preview_silence(
    api: ApiClient, where: str, times: Times, reason: str, tz: str, who: str
) -> tuple[NewSilence, list[Row]]:
    from schemas.wire.silence_events import check_silence
    from tocsin.cli.silences.add import new_silence

    now = wall_now()
    silence = new_silence(where, times, reason, tz, who, now)
    check_silence(now, silence.starts_at, silence.ends_at, silence.reason)
    return silence, await matching(api, where, ("pending", "open"))


async def add_silence(
    api: ApiClient, where: str, times: Times, reason: str, tz: str, who: str
) -> tuple[NewSilence, list[Row], int]:
    from dataclasses import replace
    from uuid import UUID

    from tocsin.cli.silences.add import new_silence

    silence = new_silence(where, times, reason, tz, who, wall_now())
    body = {
        "matcher": where,
        "starts_at": None if times[1] is None else silence.starts_at.isoformat(),
        "ends_at": silence.ends_at.isoformat(),
        "reason": reason,
    }
    added = await api.write("/v1/silences", body)
    silence = replace(silence, id=UUID(added["silence"]["id"]), created_by=added["silence"]["created_by"])
    return silence, await matching(api, where, ("pending", "open")), added["seq"]


async def list_silences(api: ApiClient, all_: bool, limit: int) -> tuple[datetime, list[Row]]:
    from rules.suppression import Silence

    items = await api.items("/v1/silences", limit, all=all_)
    rows = [{name: item[name] for name in _SILENCE} for item in items]
    alarms = [matched_alarm(_row(item)) for item in await api.items("/v1/alarms", _MOST, state="open")]
    if not all_:
        rows.sort(key=lambda row: (row["ends_at"], row["id"]))
    for row in rows:
        silence = Silence(row["id"], row["matcher"], row["starts_at"], row["ends_at"])
        row["alarms"] = sum(silence.mutes(alarm) for alarm in alarms)
    return wall_now(), rows


async def expire_silence(api: ApiClient, silence: str, who: str) -> tuple[Row, int]:
    prefix = IdPrefix(silence, "silence", "tocsin silence list --all")
    prefix.bounds()
    row = prefix.only(await api.items("/v1/silences", 2, all=True, id=silence))
    answer = await api.write(f"/v1/silences/{row['id']}:expire")
    return row, int(answer["seq"])
