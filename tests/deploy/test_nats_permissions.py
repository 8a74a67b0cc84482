"""Each permission of deploy/nats: the server accepts the allowed requests and rejects others."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NatsTimeout
from nats.js.api import StreamConfig
from structlog.testing import capture_logs

from cdc.stream import record_stream_config
from tests.deploy.guarded_nats import CONFIG, USERS, GuardedNats, guarded_nats, passwords
from tests.wait import eventually
from tocsin.core.bus import connect_bus
from tocsin.core.errors import Unreachable
from tocsin.core.settings import Settings
from tocsin.embedded import binaries


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedNats]:
    with guarded_nats(tmp_path_factory.mktemp("guarded")) as started:
        yield started


@asynccontextmanager
async def connected(server: GuardedNats, user: str) -> AsyncIterator[tuple[Client, list[str]]]:
    """A connection of that user, and the permission errors that the server sends."""
    forbidden: list[str] = []
    bus = await connect_bus(
        server.settings_of(user, Settings()), "test", lambda error: forbidden.append(str(error))
    )
    try:
        yield bus, forbidden
    finally:
        await bus.close()


async def until_rejected(forbidden: list[str], count: int) -> None:
    """Wait for the permission errors. The server sends them apart; the request has no answer."""

    async def are_rejected() -> bool:
        return len(forbidden) >= count

    await eventually(are_rejected, f"the server rejects {count} requests")
    assert len(forbidden) == count, forbidden


async def refused(server: GuardedNats, user: str, *, publish: str = "", subscribe: str = "") -> bool:
    async with connected(server, user) as (bus, forbidden):
        if publish:
            await bus.publish(publish, b"")
        else:
            await bus.subscribe(subscribe)
        # No user may publish this. Errors arrive in order, so any other is here by then.
        await bus.publish("no.user", b"")

        async def is_rejected() -> bool:
            return any("no.user" in error for error in forbidden)

        await eventually(is_rejected, "the server rejects the request")
        return len(forbidden) > 1


RECORDS = [f"tocsin.v1.{kind}.x" for kind in ("event", "action", "staleness", "health", "tombstone")]
DESTRUCTIVE = [f"$JS.API.STREAM.{request}.tocsin" for request in ("DELETE", "PURGE", "MSG.DELETE", "UPDATE")]


@pytest.mark.parametrize("user", USERS)
async def test_only_the_publisher_writes_records(server: GuardedNats, user: str) -> None:
    may = user in ("cdc", "rebuild")
    assert [await refused(server, user, publish=subject) for subject in RECORDS] == [not may] * len(RECORDS)


@pytest.mark.parametrize("user", USERS)
async def test_only_the_user_for_rebuilds_may_purge_or_delete(server: GuardedNats, user: str) -> None:
    allowed = [subject for subject in DESTRUCTIVE if not await refused(server, user, publish=subject)]
    assert allowed == (["$JS.API.STREAM.DELETE.tocsin"] if user == "rebuild" else [])


@pytest.mark.parametrize("user", USERS)
async def test_no_user_can_read_or_forge_the_answers_for_another(server: GuardedNats, user: str) -> None:
    """An answer confirms to the publisher that records are stored: only the server may send it."""
    others = [other for other in USERS if other != user]
    assert all([await refused(server, user, subscribe=f"_INBOX_{other}.>") for other in others])
    assert all([await refused(server, user, publish=f"_INBOX_{other}.x") for other in USERS])
    assert await refused(server, user, publish="_INBOX.x")


@pytest.mark.parametrize(
    ("user", "allowed", "denied"),
    [
        (
            "clock",
            ["$KV.tocsin-lease.clock", "$JS.API.STREAM.MSG.GET.KV_tocsin-lease"],
            ["$KV.tocsin-lease.cdc", "$JS.API.STREAM.INFO.tocsin", "tocsin.v1.ingest.event"],
        ),
        (
            "cdc",
            ["$KV.tocsin-lease.cdc", "$JS.API.STREAM.CREATE.tocsin", "$JS.API.STREAM.MSG.GET.tocsin"],
            ["$KV.tocsin-lease.clock", "$JS.API.CONSUMER.CREATE.tocsin.x", "tocsin.v1.datapoint.a.b"],
        ),
        (
            "worker",
            [
                "$JS.API.CONSUMER.CREATE.tocsin",
                "$JS.API.CONSUMER.DURABLE.CREATE.tocsin.actions",
                "$JS.API.CONSUMER.MSG.NEXT.tocsin.actions",
                "$JS.ACK.tocsin.actions.1.1.1.1.1",
                "$JS.API.CONSUMER.CREATE.tocsin-data",
                "$JS.API.STREAM.CREATE.tocsin-data",
                "$JS.API.STREAM.MSG.GET.tocsin-data",
                "tocsin.v1.dead.datapoint",
                "tocsin.v1.datapoint.a.b",
                "tocsin.v1.datapoint.~0.~canary",
                "reports.digest",
            ],
            [
                "$KV.tocsin-lease.clock",
                "$JS.API.STREAM.CREATE.tocsin",
                "tocsin.v1.ingest.event",
                "elsewhere",
            ],
        ),
        (
            "producer",
            ["tocsin.v1.ingest.event", "tocsin.v1.datapoint.plant.temperature", "tocsin.v1.report.a.0"],
            ["tocsin.v1.data.0.plant.temperature", "tocsin.v1.dead.datapoint", "$JS.API.INFO"],
        ),
        (
            "billing",
            [
                "$JS.API.CONSUMER.CREATE.tocsin.billing.tocsin.v1.event.>",
                "$JS.API.CONSUMER.MSG.NEXT.tocsin.billing",
                "$JS.API.CONSUMER.UNPIN.tocsin.billing",
                "$JS.ACK.tocsin.billing.1.1.1.1.1",
                "tocsin.dead.billing.7",
                "$KV.tocsin-consumers.billing",
            ],
            [
                "$JS.API.CONSUMER.CREATE.tocsin.shipping",
                "$JS.API.CONSUMER.DELETE.tocsin.shipping",
                "$JS.API.CONSUMER.MSG.NEXT.tocsin.actions",
                "$JS.ACK.tocsin.shipping.1.1.1.1.1",
                "$JS.API.CONSUMER.CREATE.tocsin-data.billing",
                "$JS.API.STREAM.CREATE.evil",
                "tocsin.dead.shipping.7",
                "$KV.tocsin-consumers.shipping",
                "tocsin.v1.ingest.event",
                "tocsin.v1.datapoint.a.b",
            ],
        ),
        (
            "operator",
            [
                "$JS.API.INFO",
                "$JS.API.CONSUMER.DELETE.tocsin.billing",
                "$JS.API.STREAM.PURGE.tocsin-consumers-dead",
                "$JS.API.STREAM.MSG.DELETE.tocsin-dead",
                "tocsin.v1.report.a.0",
            ],
            ["$KV.tocsin-lease.clock", "tocsin.dead.billing.7"],
        ),
        ("rebuild", ["$JS.API.STREAM.INFO.tocsin"], ["$KV.tocsin-lease.cdc", "$JS.API.STREAM.CREATE.evil"]),
    ],
)
async def test_each_user_may_do_what_its_role_needs_and_no_more(
    server: GuardedNats, user: str, allowed: list[str], denied: list[str]
) -> None:
    assert [subject for subject in allowed if await refused(server, user, publish=subject)] == []
    assert [subject for subject in denied if not await refused(server, user, publish=subject)] == []


async def test_a_wrong_password_is_refused(server: GuardedNats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.core.bus._CONNECT_S", 3.0)
    wrong = Settings(nats=server.url.replace("nats://", "nats://cdc:guess@"))
    with pytest.raises(Unreachable, match="Authorization"):
        await connect_bus(wrong, "test")


async def test_a_consumer_cannot_remove_messages_from_the_stream(server: GuardedNats) -> None:
    settings = server.settings_of("cdc", Settings())
    async with connected(server, "cdc") as (bus, _):
        js = bus.jetstream(timeout=5)
        await js.add_stream(record_stream_config(settings))
        await js.publish("tocsin.v1.event.caused.noted._._", b"{}")
    for user in ("billing", "operator"):
        async with connected(server, user) as (bus, forbidden):
            js = bus.jetstream(timeout=0.3)
            with pytest.raises((NatsTimeout, asyncio.TimeoutError)):
                await js.purge_stream("tocsin")
            with pytest.raises((NatsTimeout, asyncio.TimeoutError)):
                await js.delete_stream("tocsin")
            with pytest.raises((NatsTimeout, asyncio.TimeoutError)):
                await js.publish("tocsin.v1.event.caused.forged._._", b"{}", timeout=0.3)
            await until_rejected(forbidden, 3)
    async with connected(server, "operator") as (bus, _):
        assert (await bus.jetstream(timeout=5).stream_info("tocsin")).state.messages == 1


async def test_a_consumer_cannot_have_a_stream_republish_into_the_records(server: GuardedNats) -> None:
    async with connected(server, "billing") as (bus, forbidden):
        config = StreamConfig(name="evil", subjects=["evil.>"])
        with pytest.raises((NatsTimeout, asyncio.TimeoutError)):
            await bus.jetstream(timeout=0.3).add_stream(config)
        await until_rejected(forbidden, 1)
        assert "stream.create.evil" in forbidden[0].lower()


def test_the_server_accepts_the_example_configuration(tmp_path: Path) -> None:
    """Checks nats.conf with the server itself."""
    shutil.copytree(CONFIG, tmp_path / "nats")
    config = tmp_path / "nats" / "nats.conf"
    config.write_text(config.read_text().replace("/var/lib/nats", str(tmp_path / "store")))
    checked = subprocess.run(
        [binaries.nats_binary(), "-t", "-c", config],
        env={**os.environ, **passwords()},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr


async def test_a_forbidden_request_is_logged_by_the_service(server: GuardedNats) -> None:
    with capture_logs() as logs:
        bus = await connect_bus(server.settings_of("clock", Settings()), "test")
        await bus.publish("tocsin.v1.event.x", b"")

        async def is_logged() -> bool:
            return any(line["event"].startswith("nats permission missing") for line in logs)

        await eventually(is_logged, "the error is logged")
        await bus.close()
    (line,) = [line for line in logs if line["log_level"] == "error"]
    assert "tocsin.v1.event.x" in str(line["error"])
