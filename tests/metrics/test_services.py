"""Real services with their metrics, also while Postgres is down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from migrations.roles.create import create_roles
from migrations.runner import migrate
from tests.cdc.published_records import with_long_timeouts
from tests.cli.conftest import CommandLine
from tests.clock.alarms import read_until
from tests.clock.series import WITHIN, put_series, watch_series
from tests.metrics.scrapes import Samples, ask, process, scrape
from tests.wait import eventually
from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from timers.working_set import database_now
from tocsin.client.producer import Producer
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, connect
from tocsin.core.settings import Settings
from tocsin.embedded import embedded_nats, embedded_postgres


def shows(port: int, predicate: Callable[[Samples], bool]) -> Callable[[], Awaitable[bool]]:
    async def scraped() -> bool:
        return predicate(await scrape(port))

    return scraped


def is_healthy(port: int) -> Callable[[], Awaitable[bool]]:
    async def scraped() -> bool:
        return await ask(port, "/healthz") == (200, "ok\n")

    return scraped


async def soon(predicate: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait longer than usual: a process starts slowly on a busy machine."""
    await eventually(predicate, what, within=60)


async def put_beat(connection: Connection) -> None:
    actor = Actor("tester", "test", await database_now(connection))
    await put_schedule(connection, ScheduleSpec("beat", {"every": "100ms"}), actor)


async def test_each_service_shows_what_it_did_and_that_it_is_healthy(
    settings: Settings, connection: Connection
) -> None:
    with (
        process(settings, "clock") as clock,
        process(settings, "cdc") as cdc,
        process(settings, "worker") as worker,
    ):
        await soon(shows(clock.port, lambda samples: samples("tocsin_leader", role="clock") == 1), "it leads")
        await put_beat(connection)
        await clock_counts(clock.port)
        await publisher_counts(cdc.port)
        await worker_counts(worker.port, settings)
        for service in (clock, cdc, worker):
            await soon(is_healthy(service.port), "it is healthy")
            await soon(
                shows(
                    service.port,
                    lambda samples: (
                        samples("tocsin_database_up") == 1
                        and samples("tocsin_log_head_seq") > 2
                        and samples("tocsin_log_published_seq") > 2
                    ),
                ),
                "the log and the stream grow",
            )


async def clock_counts(port: int) -> None:
    ticks = {"kind": "schedule-tick"}
    await soon(
        shows(port, lambda samples: samples("tocsin_fires_total", outcome="fired", **ticks) > 2),
        "the clock fires",
    )
    samples = await scrape(port)
    assert samples("tocsin_leader", role="clock") == 1
    assert samples("tocsin_clock_epoch") >= 1
    assert abs(samples("tocsin_clock_offset_seconds")) < 5
    assert samples("tocsin_fire_batch_seconds_count", **ticks) > 2
    fired = samples("tocsin_fires_total", outcome="fired", **ticks)
    assert samples("tocsin_fire_lateness_seconds_count", **ticks) == fired
    assert 0 < samples("tocsin_fire_lateness_seconds_sum", **ticks) < 5 * fired
    assert samples.get("tocsin_published_records_total") is None, "that is the publisher's"


async def publisher_counts(port: int) -> None:
    await soon(
        shows(port, lambda samples: samples("tocsin_published_records_total") > 2), "the publisher publishes"
    )
    samples = await scrape(port)
    assert samples("tocsin_leader", role="cdc") == 1
    assert 0 < samples("tocsin_published_chunks_total") <= samples("tocsin_published_records_total")
    assert samples("tocsin_publisher_position_seq") >= samples("tocsin_published_records_total")


async def worker_counts(port: int, settings: Settings) -> None:
    await soon(
        shows(port, lambda samples: (samples.get("tocsin_lane_messages_total", lane="record") or 0) > 2),
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
            lambda samples: (
                samples("tocsin_datapoints_total", outcome="stored") == 3
                and samples("tocsin_external_events_total", outcome="appended") == 1
                and samples("tocsin_workers") == 1
                and samples("tocsin_lane_has_worker", lane="data", partition="0") == 1
            ),
        ),
        "the worker stores datapoints and events",
    )
    samples = await scrape(port)
    assert samples("tocsin_lane_batch_seconds_count", lane="data") >= 1
    assert samples.get("tocsin_leader", role="clock") is None


async def test_a_held_timer_is_counted_until_the_watermark_passes(
    settings: Settings, connection: Connection
) -> None:
    now = await database_now(connection)
    last_arrival = now - timedelta(hours=1)
    await read_until(connection, last_arrival)
    await put_series(connection, last_arrival)
    await watch_series(connection, last_arrival + WITHIN)
    await connection.execute("update tocsin.timer set nominal_at = %s", (last_arrival + WITHIN,))
    held = {"kind": "watchdog", "lane": "data", "partition": "0"}
    with process(settings, "clock") as clock:
        await soon(shows(clock.port, lambda samples: samples("tocsin_leader", role="clock") == 1), "it leads")
        samples = await scrape(clock.port)
        assert samples("tocsin_timers_held", **held) == 1, "held already before this clock led"
        assert samples("tocsin_timers_held_seconds", **held) > 3000
        await read_until(connection, now)
        await soon(
            shows(
                clock.port,
                lambda samples: (
                    samples("tocsin_timers_held", **held) == 0
                    and samples("tocsin_series_stale") == 1
                    and samples("tocsin_fires_total", kind="watchdog", outcome="fired") > 0
                ),
            ),
            "it fires",
        )
        samples = await scrape(clock.port)
        assert samples("tocsin_timers_held_seconds", **held) == 0
        assert samples("tocsin_fires_total", kind="watchdog", outcome="fired") == 1


async def test_while_postgres_is_down_metrics_are_served_without_the_database(tmp_path: Path) -> None:
    with embedded_nats(tmp_path / "nats") as nats:
        with embedded_postgres(tmp_path / "postgres") as postgres:
            settings = Settings(postgres=postgres.url, nats=nats.url, lease_ttl_s=10.0)
            connection = await connect(with_long_timeouts(settings), "test")
            await migrate(connection)
            await create_roles(connection)
            await put_beat(connection)
            await connection.close()
            started = process(settings, "clock")
            clock = started.__enter__()
            try:
                await soon(
                    shows(
                        clock.port,
                        lambda samples: (
                            samples("tocsin_fires_total", kind="schedule-tick", outcome="fired") > 0
                        ),
                    ),
                    "it fires",
                )
                await soon(is_healthy(clock.port), "it is healthy")
                postgres.stop()
                await soon(
                    shows(clock.port, lambda samples: samples("tocsin_database_up") == 0), "it is gone"
                )
                samples = await scrape(clock.port)
                assert samples("tocsin_fires_total", kind="schedule-tick", outcome="fired") > 0
                assert samples.get("tocsin_timers_armed", kind="schedule-tick") is None
                status, reason = await ask(clock.port, "/healthz")
                assert (status, reason.count("\n")) == (503, 1)
            except BaseException:
                clock.close()
                raise
        try:
            with embedded_postgres(tmp_path / "postgres"):
                await soon(is_healthy(clock.port), "it is healthy again")
                await soon(
                    shows(clock.port, lambda samples: samples("tocsin_database_up") == 1),
                    "and its metrics are back",
                )
        finally:
            clock.close()


def test_an_invalid_address_is_rejected_before_anything_runs(tocsin: CommandLine) -> None:
    tocsin.environment["TOCSIN_METRICS"] = "9464"
    assert tocsin("run", "clock", exit_code=1).err == (
        "tocsin: TOCSIN_METRICS='9464' is not an address to listen on: write host:port, such as 127.0.0.1:9464 or "
        "[::1]:9464\n"
    )


def test_the_command_prints_the_metrics_of_the_instance(tocsin: CommandLine) -> None:
    samples = Samples(tocsin("metrics").out)
    assert samples("tocsin_log_head_seq") == 0
    assert samples("tocsin_timers_armed", kind="watchdog") == 0
    assert samples.get("tocsin_database_up") is None, "a process has that, and this one is gone"
