"""The checks of the doctor that need Postgres: version, migrations, clocks, timers, retention,
stream check."""

from __future__ import annotations

import time
from datetime import timedelta

from cdc.log_reader import LogReader
from cdc.report import read_report
from clock.held_timers import read_held_timers
from clock.retention.report import read_prune_report
from clock.time_source import wall_now
from migrations.runner import refuse_unmigrated, versions
from rules.alarms.notifications import read_failing
from rules.lanes.status import count_recent_gaps, list_worker_problems
from timers.working_set import database_now, list_timers
from tocsin.core.db import Connection, fetch_all, fetch_one, fetch_value
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings
from tocsin.doctor.checks import (
    Finding,
    check_arrival_gaps,
    check_clock_offset,
    check_commits,
    check_dead_runs,
    check_failing_timers,
    check_held_timers,
    check_log_gaps,
    check_notifications,
    check_retention,
    check_stream,
    check_timers,
    check_worker_problems,
    failed,
)
from tocsin.doctor.flapping_check import check_flapping
from tocsin.doctor.heartbeat_check import check_heartbeats
from tocsin.doctor.label_check import check_labels
from tocsin.doctor.role_checks import check_rights
from tocsin.doctor.silence_check import check_silences

_MAX_PARKED_SHOWN = 100
_FAILING_SHOWN = 100
_LOST_SHOWN = 100
# The publisher checks the stream every few seconds. Without a check for this long, none is running.
_OLDEST_CHECK = timedelta(minutes=1)


async def check_database(connection: Connection, settings: Settings) -> list[Finding]:
    number = connection.info.server_version
    findings = [Finding("ok", "postgres", f"{number // 10000}.{number % 10000} at {_address(connection)}")]
    try:
        await refuse_unmigrated(connection)
    except TocsinError as error:
        return [*findings, failed("migrations", error)]
    findings.append(Finding("ok", "migrations", f"at {versions()[-1].name}"))
    findings += await check_rights(connection)
    asked_s = time.monotonic()
    now = await database_now(connection)
    host = wall_now()
    findings.append(check_clock_offset(host, now, timedelta(seconds=time.monotonic() - asked_s)))
    findings += check_commits(float(await fetch_value(connection, "tocsin.metrics/read_commit_wait")))
    parked = await list_timers(connection, parked=True, limit=_MAX_PARKED_SHOWN)
    names = [row["schedule"] or row["ref"] for row in parked]
    row = await fetch_one(connection, "tocsin.doctor/read_oldest_armed")
    findings += check_timers(names, len(parked) == _MAX_PARKED_SHOWN, row[0] if row else None, now)
    lost = await fetch_all(connection, "tocsin.doctor/list_schedules_without_tick", {"limit": _LOST_SHOWN})
    findings += _schedules_without_tick([name for (name,) in lost], len(lost) == _LOST_SHOWN)
    failing = await fetch_all(connection, "tocsin.doctor/list_failing_timers", {"limit": _FAILING_SHOWN})
    first_error = failing[0][0] if failing else None
    findings += check_failing_timers(len(failing), len(failing) == _FAILING_SHOWN, first_error)
    findings += check_worker_problems(await list_worker_problems(connection))
    findings.append(check_dead_runs(*await fetch_one(connection, "tocsin.doctor/count_dead_runs")))
    findings.append(check_notifications(await read_failing(connection)))
    findings.append(await check_silences(connection, now))
    findings += await check_flapping(connection, now)
    findings.append(await check_heartbeats(connection))
    findings += await check_labels(connection, now)
    findings.append(check_held_timers(await read_held_timers(connection)))
    findings.append(check_arrival_gaps(await count_recent_gaps(connection)))
    findings.append(check_retention(await read_prune_report(connection), _ages(settings)))
    oldest_check = max(_OLDEST_CHECK, timedelta(seconds=3 * settings.cdc_check_s))
    findings.append(check_stream(await read_report(connection), oldest_check))
    return findings + check_log_gaps(await LogReader(connection).gaps())


def _schedules_without_tick(names: list[str], more: bool) -> list[Finding]:
    """Active schedules that nothing will fire: their tick was removed by hand, or lost."""
    if not names:
        return []
    count = f"{len(names)}{' or more' if more else ''}"
    return [
        Finding(
            "red",
            "schedules",
            f"{count} active without a timer, so they never fire: {', '.join(names[:5])}",
            "`tocsin schedule pause NAME`, then `tocsin schedule resume NAME` arms it again",
        )
    ]


def _ages(settings: Settings) -> dict[str, float]:
    return {
        "records": settings.record_retention_d,
        "datapoints": settings.datapoint_retention_d,
        "audit": settings.audit_retention_d,
        "stale series": settings.series_retention_d,
    }


def _address(connection: Connection) -> str:
    info = connection.info
    return f"{info.host or 'the local socket'}:{info.port}/{info.dbname}"
