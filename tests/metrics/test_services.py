"""Real services with their pages: what they did, how the house is, and what is left when Postgres is gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from migrations.runner import migrate
from tests.cdc.publishing import patient
from tests.cli.conftest import CommandLine
from tests.clock.alarms import read_until
from tests.clock.series import WITHIN, put_series, watch_series
from tests.metrics.scraping import Figures, ask, process, scrape
from tests.waiting import eventually
from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from timers.working_set import database_now
from tocsin.client.producer import Producer
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, connect
from tocsin.core.settings import Settings
from tocsin.embedded import embedded_nats, embedded_postgres


def shows(port: int, predicate: Callable[[Figures], bool]) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return predicate(await scrape(port))

    return look


def is_well(port: int) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return await ask(port, "/healthz") == (200, "ok\n")

    return look


async def soon(predicate: Callable[[], Awaitable[bool]], what: str) -> None:
    """Starting a process takes a while where everything is slow."""
    await eventually(predicate, what, within=60)


async def put_beat(connection: Connection) -> None:
    actor = Actor("tester", "test", await database_now(connection))
    await put_schedule(connection, ScheduleSpec("beat", {"every": "100ms"}), actor)


async def test_each_service_shows_what_it_did_and_that_it_is_well(
    settings: Settings, connection: Connection
) -> None:
    with (
        process(settings, "clock") as clock,
        process(settings, "cdc") as cdc,
        process(settings, "worker") as worker,
    ):
        await soon(shows(clock.port, lambda page: page("tocsin_leader", role="clock") == 1), "it leads")
        await put_beat(connection)
        await clock_counts(clock.port)
        await publisher_counts(cdc.port)
        await worker_counts(worker.port, settings)
        for one in (clock, cdc, worker):
            await soon(is_well(one.port), "it is well")
            await soon(
                shows(
                    one.port,
                    lambda page: (
                        page("tocsin_database_up") == 1
                        and page("tocsin_log_head_seq") > 2
                        and page("tocsin_log_published_seq") > 2
                    ),
                ),
                "the log and the stream grow",
            )


async def clock_counts(port: int) -> None:
    ticks = {"kind": "schedule-tick"}
    await soon(
        shows(port, lambda page: page("tocsin_fires_total", outcome="fired", **ticks) > 2), "the clock fires"
    )
    page = await scrape(port)
    assert page("tocsin_leader", role="clock") == 1
    assert page("tocsin_clock_epoch") >= 1
    assert abs(page("tocsin_clock_offset_seconds")) < 5
    assert page("tocsin_fire_batch_seconds_count", **ticks) > 2
    fired = page("tocsin_fires_total", outcome="fired", **ticks)
    assert page("tocsin_fire_lateness_seconds_count", **ticks) == fired
    assert 0 < page("tocsin_fire_lateness_seconds_sum", **ticks) < 5 * fired
    assert page.get("tocsin_published_records_total") is None, "that is the publisher's"


async def publisher_counts(port: int) -> None:
    await soon(
        shows(port, lambda page: page("tocsin_published_records_total") > 2), "the publisher publishes"
    )
    page = await scrape(port)
    assert page("tocsin_leader", role="cdc") == 1
    assert 0 < page("tocsin_published_chunks_total") <= page("tocsin_published_records_total")
    assert page("tocsin_publisher_position_seq") >= page("tocsin_published_records_total")


async def worker_counts(port: int, settings: Settings) -> None:
    await soon(
        shows(port, lambda page: (page.get("tocsin_lane_messages_total", lane="record") or 0) > 2),
        "the worker reads",
    )
    async with Producer(settings) as producer:
        for number in range(3):
            await producer.send("plant-7", "dsp.temperature", number)
        for _ in range(2):
            await producer.emit("noted", key="once")
    await soon(
        shows(
            port,
            lambda page: (
                page("tocsin_datapoints_total", outcome="stored") == 3
                and page("tocsin_external_events_total", outcome="appended") == 1
                and page("tocsin_workers") == 1
                and page("tocsin_lane_drained", lane="data", partition="0") == 1
            ),
        ),
        "the worker stores and catches",
    )
    page = await scrape(port)
    assert page("tocsin_lane_batch_seconds_count", lane="data") >= 1
    assert page.get("tocsin_leader", role="clock") is None


async def test_a_verdict_that_waits_is_on_the_page_until_the_lane_catches_up(
    settings: Settings, connection: Connection
) -> None:
    now = await database_now(connection)
    silent_since = now - timedelta(hours=1)
    await read_until(connection, silent_since)
    await put_series(connection, silent_since)
    await watch_series(connection, silent_since + WITHIN)
    await connection.execute("update tocsin.timer set nominal_at = %s", (silent_since + WITHIN,))
    held = {"kind": "watchdog", "lane": "data", "partition": "0"}
    with process(settings, "clock") as clock:
        await soon(shows(clock.port, lambda page: page("tocsin_leader", role="clock") == 1), "it leads")
        page = await scrape(clock.port)
        assert page("tocsin_verdicts_held", **held) == 1, "as it was before the clock came"
        assert page("tocsin_verdicts_held_seconds", **held) > 3000
        await read_until(connection, now)
        await soon(
            shows(
                clock.port,
                lambda page: (
                    page("tocsin_verdicts_held", **held) == 0
                    and page("tocsin_series_stale") == 1
                    and page("tocsin_fires_total", kind="watchdog", outcome="fired") > 0
                ),
            ),
            "it speaks",
        )
        page = await scrape(clock.port)
        assert page("tocsin_verdicts_held_seconds", **held) == 0
        assert page("tocsin_fires_total", kind="watchdog", outcome="fired") == 1


async def test_while_postgres_is_gone_the_page_answers_and_says_so(tmp_path: Path) -> None:
    with embedded_nats(tmp_path / "nats") as nats:
        with embedded_postgres(tmp_path / "postgres") as postgres:
            settings = Settings(postgres=postgres.url, nats=nats.url, lease_ttl_s=10.0)
            connection = await connect(patient(settings), "test")
            await migrate(connection)
            await put_beat(connection)
            await connection.close()
            started = process(settings, "clock")
            clock = started.__enter__()
            try:
                await soon(
                    shows(
                        clock.port,
                        lambda page: page("tocsin_fires_total", kind="schedule-tick", outcome="fired") > 0,
                    ),
                    "it fires",
                )
                await soon(is_well(clock.port), "it is well")
                postgres.stop()
                await soon(shows(clock.port, lambda page: page("tocsin_database_up") == 0), "it is gone")
                page = await scrape(clock.port)
                assert page("tocsin_fires_total", kind="schedule-tick", outcome="fired") > 0
                assert page.get("tocsin_timers_armed", kind="schedule-tick") is None
                status, reason = await ask(clock.port, "/healthz")
                assert (status, reason.count("\n")) == (503, 1)
            except BaseException:
                clock.close()
                raise
        try:
            with embedded_postgres(tmp_path / "postgres"):
                await soon(is_well(clock.port), "it is well again")
                await soon(shows(clock.port, lambda page: page("tocsin_database_up") == 1), "and says so")
        finally:
            clock.close()


def test_an_address_that_is_none_is_refused_before_anything_runs(tocsin: CommandLine) -> None:
    tocsin.environment["TOCSIN_METRICS"] = "9464"
    assert tocsin("run", "clock", exit_code=1).err == (
        "tocsin: TOCSIN_METRICS='9464' is no address to listen on: write host:port, such as 127.0.0.1:9464 or "
        "[::1]:9464\n"
    )


def test_the_command_prints_the_house(tocsin: CommandLine) -> None:
    found = Figures(tocsin("metrics").out)
    assert found("tocsin_log_head_seq") == 0
    assert found("tocsin_timers_armed", kind="watchdog") == 0
    assert found.get("tocsin_database_up") is None, "a process has that, and this one is gone"
