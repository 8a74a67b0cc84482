"""Results of a digest: lists and sums over alarms, events, series and runs of a period. Pure.

Guarantee: live workers and rule tests read the same material (`DigestMaterial`) and get the same
rows from it, so a digest that passes its test is filled live as well. `where` filters every list.
`counts` has the totals, even if a list is cut at `limit` rows.

The time in alarm is counted within the period. The time to acknowledge is counted from the opening.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rules.language.cel import compile_matcher
from schemas.documents.runbook.digest import QUERIES, DigestStep
from schemas.values.rule_ref import RuleRef
from schemas.values.severities import level_name

MAX_ROWS = 10_000
"""Rows of each kind that are read for a digest, the newest first."""
DEFAULT_PERIOD = timedelta(days=1)
_NOISIEST = 10
Row = Mapping[str, Any]


@dataclass(frozen=True)
class DigestMaterial:
    """The rows that a digest reads, as the statements in `sql/` return them."""

    since: datetime
    until: datetime
    is_first: bool = False
    """Whether no digest came before: then an alarm that opened at `since` belongs to this period."""
    alarms: Sequence[Row] = ()
    """Alarms that are open, or resolved after `since`: `list_digest_alarms.sql`."""
    events: Sequence[Row] = ()
    """Facts of events, the newest first."""
    stale_series: Sequence[Row] = ()
    dead_runs: Sequence[Row] = ()
    """Runs that failed or timed out after `since`: `list_dead_runs.sql`."""


def digest_period(previous_at: datetime | None, next_at: datetime | None, at: datetime) -> datetime:
    """The beginning of the period of a digest at `at`: the previous digest. The first digest covers
    the time to the next occurrence of its schedule, or a day."""
    if previous_at is not None:
        return previous_at
    return at - (next_at - at if next_at is not None and next_at > at else DEFAULT_PERIOD)


def digest_results(digest: DigestStep, material: DigestMaterial) -> dict[str, Any]:
    """The rows of each query under its name, `noisiest_owners`, `period` and `counts`."""
    matches = _filter(digest.where)
    alarms = [alarm for alarm in material.alarms if matches(_alarm_fields(alarm))]
    opened = [alarm for alarm in alarms if alarm["state"] == "open"]
    opened.sort(key=lambda alarm: (-alarm["severity"], alarm["since"], str(alarm["id"])))
    runs = [run for run in material.dead_runs if matches(_run_fields(run))]
    rows: dict[str, list[dict[str, Any]]] = {
        "summary": _summary_rows(alarms, material),
        "open_alarms": [_open_alarm(alarm) for alarm in opened],
        "events": [dict(event) for event in material.events if matches(_event_fields(event))],
        "stale_series": [dict(series) for series in material.stale_series if matches(series)],
        "undelivered": [_run(run) for run in runs if _channel(run)],
        "dead_runs": [_run(run) for run in runs if not _channel(run)],
    }
    counts = {query: len(rows[query]) for query in digest.queries}
    if "summary" in counts:
        counts["summary"] = sum(row["count"] for row in rows["summary"])
    return {
        **{query: rows[query][: digest.limit] if query in counts else [] for query in QUERIES},
        "noisiest_owners": _noisiest_owners(alarms, material),
        "period": {"since": material.since, "until": material.until},
        "counts": counts,
    }


def _summary_rows(alarms: Iterable[Row], material: DigestMaterial) -> list[dict[str, Any]]:
    """One row for each rule, the most time in alarm first: how many alarms opened, how many are open,
    the total and the longest time in alarm, and the mean time to acknowledge."""
    by_rule: dict[str, list[Row]] = defaultdict(list)
    for alarm in alarms:
        if alarm["opened_at"] is not None and alarm["opened_at"] <= material.until:
            by_rule[alarm["rule"]].append(alarm)
    rows = [_summary_row(rule, of_rule, material) for rule, of_rule in by_rule.items()]
    return sorted(rows, key=lambda row: (-row["total"], row["rule"]))


def _summary_row(rule: str, alarms: Sequence[Row], material: DigestMaterial) -> dict[str, Any]:
    times = [_time_in_alarm(alarm, material.since, material.until) for alarm in alarms]
    waits = [
        alarm["acknowledged_at"] - alarm["opened_at"]
        for alarm in alarms
        if alarm["acknowledged_at"] is not None and alarm["acknowledged_at"] > material.since
    ]
    return {
        "rule": rule,
        "title": next((alarm["payload"]["title"] for alarm in alarms if alarm["payload"].get("title")), ""),
        "severity": level_name(max(alarm["severity"] for alarm in alarms)),
        "count": sum(_opened(alarm, material) for alarm in alarms),
        "open": sum(alarm["state"] == "open" for alarm in alarms),
        "total": sum(times, timedelta(0)),
        "longest": max(times),
        "acknowledged": len(waits),
        "time_to_acknowledge": sum(waits, timedelta(0)) / len(waits) if waits else None,
    }


def _time_in_alarm(alarm: Row, since: datetime, until: datetime) -> timedelta:
    end: datetime = min(alarm["resolved_at"] or until, until)
    begin: datetime = max(alarm["opened_at"], since)
    return max(end - begin, timedelta(0))


def _opened(alarm: Row, material: DigestMaterial) -> bool:
    """Whether an alarm opened in the period."""
    at, since = alarm["opened_at"], material.since
    return at is not None and (since <= at if material.is_first else since < at)


def _noisiest_owners(alarms: Iterable[Row], material: DigestMaterial) -> list[dict[str, Any]]:
    counts = Counter(alarm["owner"] for alarm in alarms if _opened(alarm, material))
    noisiest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_NOISIEST]
    return [{"owner": owner, "count": count} for owner, count in noisiest]


def _open_alarm(alarm: Row) -> dict[str, Any]:
    return {
        "id": str(alarm["id"]),
        "rule": alarm["rule"],
        "title": str(alarm["payload"].get("title") or ""),
        "owner": alarm["owner"],
        "state": alarm["state"],
        "severity": level_name(alarm["severity"]),
        "since": alarm["since"],
        "message": str(alarm["payload"].get("message") or ""),
        "acknowledged": alarm["acknowledged_at"] is not None,
        "acknowledged_by": alarm["acknowledged_by"] or "",
        "snoozed": alarm["snoozed"],
        "payload": alarm["payload"],
    }


def _run(run: Row) -> dict[str, Any]:
    reference = RuleRef.parse(run["rule"])
    rule, _, channel = reference.name.rpartition(":") if _channel(run) else (run["rule"], "", "")
    return {
        "id": str(run["id"]),
        "action": run["name"],
        "rule": rule,
        "channel": channel,
        "owner": run["owner"],
        "state": run["state"],
        "ended_at": run["ended_at"],
        "error": run["error"] or "",
    }


def _channel(run: Row) -> str:
    """The channel of a notification; empty for any other run."""
    reference = RuleRef.parse(run["rule"])
    return reference.name.rpartition(":")[2] if reference.kind == "notify" else ""


def _filter(where: str | None) -> Callable[[Row], bool]:
    return (lambda fields: True) if where is None else compile_matcher(where).matches


def _alarm_fields(alarm: Row) -> dict[str, Any]:
    payload = alarm["payload"]
    return {**_payload_fields(payload), **{name: alarm[name] for name in ("rule", "owner", "severity")}}


def _event_fields(event: Row) -> dict[str, Any]:
    return {
        **_payload_fields(event["payload"]),
        **{name: event[name] for name in ("rule", "owner", "severity", "type")},
    }


def _payload_fields(payload: Row) -> dict[str, Any]:
    labels = payload.get("labels")
    fields = {name: payload.get(name) for name in ("key", "instance", "title")}
    return {
        **fields,
        "type": payload.get("event_type"),
        "labels": labels if isinstance(labels, Mapping) else {},
    }


def _run_fields(run: Row) -> dict[str, Any]:
    return {"rule": _run(run)["rule"], "owner": run["owner"]}
