"""The plans of the statements that services run, made for tables of five rows.

A plan that reads a whole table is harmless while the table is small. A service that keeps it stops when
the table has grown.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.sql import one_row
from tocsin.core.db import Connection, connect, connect_service
from tocsin.core.settings import Settings

_ROOT = Path(__file__).parent.parent
_PACKAGES = ("cdc", "clock", "timers", "rules", "tocsin/metrics")
_COMMANDS = re.compile(
    r"rules/(apply|replay)/|clock/explain/|/list_(alarms|health|keys|rules|schedules|silences|timers)\.|/find_failed_timers\."
)
"""Statements of commands and replays, which read whole tables on purpose."""
_BOUNDED = {
    "calc_position",
    "cdc_report",
    "event_kept",
    "lane_partition",
    "lane_worker",
    "log_gap",
    "log_head",
    "member_observation",
    "pipeline_report",
    "prune_report",
    "system_health",
}
"""Tables of one row, of a row for each partition, worker, loss or system, and queues that are read whole."""
_DEPENDS_ON_VALUES = {
    "rules/health/sql/read_member_states.sql": {"member_series", "member_alarm"},
    "clock/retention/sql/list_ended_schedules.sql": {"action"},
}
"""Plans that depend on the parameters and sizes. The sessions that run them keep no plans."""
_FILL = (
    "insert into tocsin.schedule (name, recurrence, status, created_by, created_via, created_at, updated_at)"
    """ select 's' || n, '{"at": "2026-03-02T08:00:00Z"}', 'active', 'me', 'test', now(), now()"""
    " from generate_series(1, 5) n",
    "insert into tocsin.current_value (owner, key, partition, value, ts, arrived_at, stream_seq, first_arrived_at,"
    " freshness) select 'o' || n, 'k', 0, '1', now(), now(), 1, now(), 'fresh' from generate_series(1, 5) n",
    "insert into tocsin.alarm (id, event_rule, owner, state, severity, since, opened_at, correlation_id)"
    " select gen_random_uuid(), 'r' || n, 'o' || n, 'open', 1, now(), now(), gen_random_uuid()"
    " from generate_series(1, 5) n",
    "insert into tocsin.action (id, name, action_rule, group_key, event_id, event_seq, document, state, started_at,"
    " correlation_id) select id, 'tell', event_rule, id::text, id, 1, '{}', 'running', now(), id from tocsin.alarm",
    "insert into tocsin.silence (id, matcher, starts_at, ends_at, created_by, created_via, created_at)"
    " select id, 'true', now(), now() + interval '1 hour', 'me', 'test', now() from tocsin.alarm",
    "insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, generation)"
    " select kind, id::text, '', now(), now(), 1 from tocsin.alarm,"
    " unnest(array['for-sustain', 'runbook-wait', 'schedule-tick', 'watchdog']) kind",
)


def _statements() -> Iterator[str]:
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("sql/*.sql")):
            name = path.relative_to(_ROOT).as_posix()
            if not _COMMANDS.search(name) and _is_query(path.read_text(encoding="utf-8")):
                yield name


def _is_query(text: str) -> bool:
    sql = re.sub(r"(?m)^\s*--.*$", "", text).split(maxsplit=1)
    return sql[0] in ("select", "insert", "update", "delete", "with") and "staged_datapoint" not in text


def _numbered(text: str) -> str:
    """The statement with parameters as `explain (generic_plan)` reads them."""
    numbers: dict[str, str] = {}
    text = re.sub(r"(?m)^\s*--.*$", "", text)
    text = re.sub(r"%\((\w+)\)s", lambda match: numbers.setdefault(match[1], f"${len(numbers) + 1}"), text)
    positions = itertools.count(len(numbers) + 1)
    return re.sub(r"%s", lambda _: f"${next(positions)}", text)


def _scanned_tables(node: dict[str, Any]) -> Iterator[str]:
    if node["Node Type"] == "Seq Scan":
        yield re.sub(r"_\d+$", "", node["Relation Name"])
    for child in node.get("Plans", ()):
        yield from _scanned_tables(child)


async def _plan(connection: Connection, name: str) -> dict[str, Any]:
    sql = _numbered((_ROOT / name).read_text(encoding="utf-8"))
    row = await one_row(connection, f"explain (generic_plan, format json) {sql}")
    plan: dict[str, Any] = row["QUERY PLAN"][0]["Plan"]
    return plan


@pytest.fixture
async def small(connection: Connection) -> None:
    for statement in _FILL:
        await connection.execute(statement.encode())
    await connection.execute("analyze")


async def test_services_read_no_growing_table_as_a_whole(settings: Settings, small: None) -> None:
    service = await connect_service(settings, "test")
    try:
        scanned = {name: set(_scanned_tables(await _plan(service, name))) for name in _statements()}
    finally:
        await service.close()
    growing = {name: tables - _BOUNDED for name, tables in scanned.items()}
    assert {name: tables for name, tables in growing.items() if tables} == _DEPENDS_ON_VALUES


async def test_the_planner_would_read_small_tables_as_a_whole(settings: Settings, small: None) -> None:
    """The test above can fail: a session of a command makes such plans."""
    command = await connect(settings, "test")
    try:
        assert "timer" in _scanned_tables(await _plan(command, "clock/sql/lock_due_waits.sql"))
    finally:
        await command.close()


@pytest.mark.parametrize("name", ["statement_timeout", "jit", "enable_seqscan"])
async def test_options_of_a_role_do_not_change_the_sessions_of_services(
    settings: Settings, connection: Connection, name: str
) -> None:
    value = {"statement_timeout": "1ms", "jit": "on", "enable_seqscan": "on"}[name]
    await connection.execute(
        f"alter role current_user in database {connection.info.dbname} set {name} = '{value}'"
    )
    service = await connect_service(settings, "test")
    try:
        row = await one_row(service, f"show {name}")
    finally:
        await service.close()
    assert row[name] in ("0", "off")


async def _whole_reads(connection: Connection) -> int:
    await connection.execute("select pg_stat_force_next_flush()")
    await connection.execute("select pg_stat_clear_snapshot()")
    row = await one_row(
        connection,
        "select sum(seq_scan)::bigint as whole from pg_stat_user_tables"
        " where schemaname = 'tocsin' and relname in ('timer', 'schedule')",
    )
    return int(row["whole"])


@pytest.mark.parametrize(
    "call",
    [
        "tocsin.arm('runbook-wait', gen_random_uuid()::text, '', now())",
        "tocsin.cancel('runbook-wait', gen_random_uuid()::text)",
        "tocsin.cancel_all(gen_random_uuid()::text)",
        "tocsin.schedule_once('svc', gen_random_uuid()::text, now() + '1 hour')",
        "tocsin.schedule_cancel('svc', gen_random_uuid()::text)",
    ],
    ids=lambda call: call.partition("(")[0],
)
async def test_functions_for_services_read_by_index_in_any_session(
    settings: Settings, small: None, call: str
) -> None:
    async with await psycopg.AsyncConnection.connect(settings.postgres, autocommit=True) as service:
        before = await _whole_reads(service)
        for _ in range(8):  # a session keeps a generic plan from the sixth call on
            await service.execute(f"select {call}")
        assert await _whole_reads(service) == before


def test_the_present_instant_is_read_once() -> None:
    """A volatile function in a condition is called for every row, and no index is used for it."""
    paths = [path for package in (*_PACKAGES, "tocsin", "bench") for path in (_ROOT / package).rglob("*.sql")]
    assert len(paths) > 300
    compared = re.compile(r"[<>]=? tocsin\.instant\(\)")
    assert [path.name for path in paths if compared.search(path.read_text(encoding="utf-8"))] == []
