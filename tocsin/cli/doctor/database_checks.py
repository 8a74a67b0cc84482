"""What the doctor asks Postgres: version, migrations, clock offset, timers, what the publisher said of the stream."""

from __future__ import annotations

import time
from datetime import timedelta

from cdc.log_reader import LogReader
from cdc.report import read_report
from clock.held_timers import read_held_timers
from clock.retention.report import read_prune_report
from clock.time_source import wall_now
from migrations.runner import refuse_unmigrated, versions
from timers.working_set import database_now, list_timers
from tocsin.cli.doctor.checks import (
    Finding,
    cdc_audit,
    clock_offset,
    log_gaps,
    pipeline,
    retention,
    split_remedy,
    timers,
)
from tocsin.core.db import Connection, fetch_one
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings

_PARKED_SHOWN = 100
# Audits come every few seconds; a publisher that has been silent for this long is away.
_SILENT = timedelta(minutes=1)


async def look_at_database(connection: Connection, settings: Settings) -> list[Finding]:
    number = connection.info.server_version
    found = [Finding("ok", "postgres", f"{number // 10000}.{number % 10000} at {_address(connection)}")]
    try:
        await refuse_unmigrated(connection)
    except TocsinError as error:
        return [*found, Finding("red", "migrations", *split_remedy(error))]
    found.append(Finding("ok", "migrations", f"at {versions()[-1].name}"))
    asked_s = time.monotonic()
    now = await database_now(connection)
    host = wall_now()
    found.append(clock_offset(host, now, timedelta(seconds=time.monotonic() - asked_s)))
    parked = await list_timers(connection, parked=True, limit=_PARKED_SHOWN)
    names = [row["schedule"] or row["ref"] for row in parked]
    row = await fetch_one(connection, "tocsin.cli/read_oldest_armed")
    found += timers(names, len(parked) == _PARKED_SHOWN, row[0] if row else None, now)
    found.append(pipeline(await read_held_timers(connection)))
    found.append(retention(await read_prune_report(connection), _ages(settings)))
    silent = max(_SILENT, timedelta(seconds=3 * settings.cdc_audit_s))
    found.append(cdc_audit(await read_report(connection), silent))
    return found + log_gaps(await LogReader(connection).gaps())


def _ages(settings: Settings) -> dict[str, float]:
    return {
        "records": settings.record_retention_d,
        "datapoints": settings.datapoint_retention_d,
        "audit": settings.audit_retention_d,
        "silent series": settings.series_retention_d,
    }


def _address(connection: Connection) -> str:
    info = connection.info
    return f"{info.host or 'the local socket'}:{info.port}/{info.dbname}"
