"""Events, runs of actions, the audit, dead letters and explanations over HTTP."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from clock.explain.explanation import Explanation
from clock.time_source import wall_now
from rules.actions.history import Attempt, Statistics
from rules.alarms.explain import AlarmExplanation
from rules.alarms.explain_active_times import ActiveTimesExplanation
from rules.alarms.explain_references import ReferencesExplanation
from rules.runbook.states import DEAD
from tocsin.cli.options import instant_or_ago
from tocsin.cli.remote.api_client import ApiClient, Row, with_instants
from tocsin.cli.remote.schedules import find_schedule
from tocsin.core.audit_chain import ChainReport
from tocsin.core.errors import Forbidden, NotFound
from tocsin.core.id_prefix import IdPrefix

_EVENT_COLUMNS = (
    *("seq", "id", "ts", "recorded_at", "origin", "type", "schedule", "rule", "action", "owner", "fire_at"),
    *("alarm_id", "severity", "source_event_id", "correlation_id", "payload", "epoch", "level"),
)


async def list_events(api: ApiClient, since: str | None, since_seq: int | None, filters: Row) -> list[Row]:
    filters = dict(filters)
    limit = filters.pop("limit")
    if since_seq is not None:
        found = await _events_after(api, since_seq, limit, filters)
    else:
        found = await api.items("/v1/events", limit, **filters)
        if since is not None:
            instant = instant_or_ago(since, "--since", wall_now())
            found = [row for row in found if row["recorded_at"] >= instant]
        found.reverse()
    return [{name: row[name] for name in _EVENT_COLUMNS} for row in found]


async def _events_after(api: ApiClient, seq: int, limit: int, filters: Row) -> list[Row]:
    found: list[Row] = []
    while len(found) < limit:
        page = (await api.get("/v1/events", after=seq, limit=min(500, limit - len(found)), **filters))[
            "items"
        ]
        found += [with_instants(item) for item in page]
        if not page:
            break
        seq = page[-1]["seq"]
    return found


async def list_runs(
    api: ApiClient,
    states: tuple[str, ...] | None,
    name: str | None,
    rule: str | None,
    owner: str | None,
    since: str | None,
    limit: int,
) -> tuple[datetime, list[Row]]:
    now = wall_now()
    from_at = None if since is None else instant_or_ago(since, "--since", now)
    filters = {"name": name, "rule": rule, "owner": owner, "since": from_at}
    if states is None or len(states) == 1:
        return now, await api.items("/v1/actions", limit, state=states and states[0], **filters)
    if set(states) == set(DEAD):
        return now, await api.items("/v1/actions", limit, state="dead", **filters)
    found = [row for state in states for row in await api.items("/v1/actions", limit, state=state, **filters)]
    return now, sorted(found, key=lambda row: row["started_at"], reverse=True)[:limit]


async def _find_run(api: ApiClient, text: str) -> Row:
    prefix = IdPrefix(text, "action", "tocsin actions")
    prefix.bounds()
    return prefix.only(await api.items("/v1/actions", 2, id=text))


async def show_run(api: ApiClient, run: str) -> tuple[Row, list[Attempt]]:
    found = await _find_run(api, run)
    row = with_instants(await api.get(f"/v1/actions/{found['id']}"))
    attempts = []
    for step in map(with_instants, row.pop("steps")):
        step.pop("took_ms")
        attempts.append(Attempt(**step))
    return row, attempts


async def retry_run(api: ApiClient, run: str, who: str) -> tuple[Row, list[int]]:
    row = await _find_run(api, run)
    return row, (await api.write(f"/v1/actions/{row['id']}:retry"))["steps"]


async def cancel_run(api: ApiClient, run: str, who: str) -> Row:
    row = await _find_run(api, run)
    await api.write(f"/v1/actions/{row['id']}:cancel")
    return row


async def read_statistics(api: ApiClient, since: str | None) -> Statistics:
    from_at = None if since is None else instant_or_ago(since, "--since", wall_now())
    answer = await api.get("/v1/stats", since=from_at)
    return _statistics(answer, {rule: _statistics(counts, {}) for rule, counts in answer["rules"].items()})


def _statistics(answer: Row, rules: dict[str, Statistics]) -> Statistics:
    average_ms = answer["average_ms"]
    return Statistics(answer["states"], None if average_ms is None else average_ms / 1000, rules)


async def list_audit(api: ApiClient, name: str | None, limit: int) -> list[Row]:
    return list(reversed(await api.items("/v1/audit", limit, name=name)))


async def verify_audit(api: ApiClient, head: tuple[int, str] | None) -> ChainReport:
    text = None if head is None else f"{head[0]}:{head[1]}"
    return ChainReport(**await api.get("/v1/audit:verify", head=text))


async def list_dead_letters(api: ApiClient, kind: str | None, limit: int) -> list[Row]:
    page = await api.get("/v1/dead-letters", kind=kind, limit=min(limit, 500))
    return list(page["items"])


async def explain_alarm(api: ApiClient, alarm_id: str) -> AlarmExplanation | None:
    """None if a schedule has this name, or if no alarm has this ID."""
    if await _has_schedule(api, "", alarm_id):
        return None
    found = await api.items("/v1/alarms", 2, state="all", id=alarm_id)
    if len(found) != 1:
        return None
    answer = await api.get(f"/v1/alarms/{found[0]['id']}/explanation")
    return AlarmExplanation(answer["sentence"], tuple(answer["history"]), answer["facts"])


async def explain_active_times(
    api: ApiClient, name: str, owner: str, instant: datetime | None
) -> list[ActiveTimesExplanation]:
    """Empty if a schedule has this name, if nothing with `active_in` has it, or if the caller may not view rules."""
    if await _has_schedule(api, owner, name):
        return []
    try:
        answer = await api.get("/v1/rules:active", name=name, at=instant)
    except Forbidden:
        return []
    return [ActiveTimesExplanation(each["sentence"], each["facts"]) for each in answer]


async def explain_references(api: ApiClient, rule: str, owner: str) -> ReferencesExplanation | None:
    """None if a schedule has this name, or if no event_rule over alarms has it."""
    if await _has_schedule(api, owner, rule):
        return None
    try:
        answer = await api.get(f"/v1/rules/event_rule/{quote(rule, safe='')}/explanation", owner=owner)
    except NotFound:
        return None
    return ReferencesExplanation(answer["condition"], tuple(answer["lines"]), answer["refers_to"])


async def explain_schedule(
    api: ApiClient, owner: str, schedule: str, instant: datetime | None
) -> Explanation:
    row = await find_schedule(api, owner, schedule)
    answer = await api.get(f"/v1/schedules/{row['id']}/explanation", at=instant)
    return Explanation(answer["outcome"], answer["sentence"], answer["facts"])


async def _has_schedule(api: ApiClient, owner: str, name: str) -> bool:
    return bool((await api.get("/v1/schedules", owner=owner, name=name, limit=1))["items"])
