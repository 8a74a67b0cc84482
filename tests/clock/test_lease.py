"""A lease: one holder at a time, handed over when it stops, taken over when it dies."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import nats
import pytest
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

from clock import lease as lease_module
from clock.lease import Lease, _compare_and_set, current_holder, hold_lease
from tests.paths import ROOT
from tests.wait import eventually
from tocsin.core import bus as bus_module
from tocsin.core.service import Service, beat, running
from tocsin.core.settings import Settings
from tocsin.embedded import Servers, embedded_nats

_numbers = itertools.count(1)


@pytest.fixture
def lease_settings(servers: Servers) -> Settings:
    """A namespace of its own in NATS; no database is needed."""
    return Settings(nats=servers.nats_url, namespace=f"lease_{next(_numbers)}", lease_ttl_s=1.0)


@pytest.fixture
def long_ttl(lease_settings: Settings) -> Settings:
    """The same with a TTL that no stall of the machine outlasts."""
    return lease_settings.model_copy(update={"lease_ttl_s": 30.0})


@pytest.fixture
async def bus(lease_settings: Settings) -> AsyncIterator[Client]:
    connected = await nats.connect(lease_settings.nats)
    yield connected
    await connected.close()


async def until(condition: Callable[[], bool], what: str) -> None:
    async def holds() -> bool:
        return condition()

    await eventually(holds, what)


async def lease_without_thread(lease_settings: Settings, bus: Client) -> Lease:
    """A lease without its thread: the test calls its steps."""
    await lease_module._ensure_bucket(bus, lease_settings)
    return Lease(lease_settings, "clock")


async def test_of_two_candidates_one_holds_and_a_clean_stop_hands_over(
    long_ttl: Settings, bus: Client
) -> None:
    async with hold_lease(long_ttl, "clock") as first:
        await first.wait_until_held()
        assert await current_holder(bus, long_ttl, "clock") == first.holder
        async with hold_lease(long_ttl, "clock") as second:
            await first.stop()
            assert not first.held
            async with asyncio.timeout(30):
                await second.wait_until_held()
            assert await current_holder(bus, long_ttl, "clock") == second.holder
    assert await current_holder(bus, long_ttl, "clock") is None


async def test_a_candidate_does_not_take_a_lease_that_another_holds(long_ttl: Settings, bus: Client) -> None:
    first = await lease_without_thread(long_ttl, bus)
    second = await lease_without_thread(long_ttl, bus)
    assert await first._take(bus) is not None
    assert first.held
    assert await second._take(bus) is None
    assert not second.held


async def test_roles_are_held_independently(lease_settings: Settings) -> None:
    async with hold_lease(lease_settings, "clock") as clock, hold_lease(lease_settings, "cdc") as cdc:
        await clock.wait_until_held()
        async with asyncio.timeout(30):
            await cdc.wait_until_held()


async def test_a_killed_holder_is_replaced_when_its_key_expires(lease_settings: Settings) -> None:
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.clock.lease_process", lease_settings.nats, lease_settings.namespace),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"held\n"
        async with hold_lease(lease_settings, "clock") as second:
            holder.kill()
            async with asyncio.timeout(30):
                await second.wait_until_held()
    finally:
        if holder.returncode is None:
            holder.kill()
        await holder.wait()


async def test_a_frozen_holder_loses_its_lease_at_the_deadline_and_another_takes_over(
    lease_settings: Settings,
) -> None:
    thaw = threading.Event()
    async with hold_lease(lease_settings, "clock") as frozen:
        await frozen.wait_until_held()
        assert frozen._loop is not None
        frozen._loop.call_soon_threadsafe(thaw.wait)
        try:
            async with hold_lease(lease_settings, "clock") as second:
                async with asyncio.timeout(30):
                    await second.wait_until_held()
                assert not frozen.held, "two processes held the lease at once"
        finally:
            thaw.set()


async def test_a_lease_that_resigned_is_released_and_competed_for_again(lease_settings: Settings) -> None:
    async with hold_lease(lease_settings, "clock") as lease:
        await lease.wait_until_held()
        subscriber = await nats.connect(lease_settings.nats)
        releases = await subscriber.subscribe(f"$KV.{lease_settings.lease_bucket}.clock")
        await subscriber.flush()
        lease.resign()
        assert not lease.held

        async def released() -> bool:
            message = await releases.next_msg(timeout=20)
            return (message.headers or {}).get("KV-Operation") == "DEL"

        await eventually(released, "the key is released")
        async with asyncio.timeout(30):
            await lease.wait_until_held()
        await subscriber.close()


async def test_resigning_without_the_lease_does_not_affect_the_next_one(
    long_ttl: Settings, bus: Client
) -> None:
    lease = await lease_without_thread(long_ttl, bus)
    lease.resign()
    assert await lease._take(bus) is not None
    assert lease.held
    assert not lease._resigned.is_set(), "it would be released at once"


async def test_a_restart_of_nats_ends_the_lease_only_until_nats_is_back(tmp_path: Path) -> None:
    with embedded_nats(tmp_path) as server:
        lease_settings = Settings(nats=server.url, namespace="restarted", lease_ttl_s=1.0)
        lease = Lease(lease_settings, "clock")
        lease.start()
        await lease.wait_until_held()
    await until(lambda: not lease.held, "the deadline passes while nats is away")
    with embedded_nats(tmp_path) as server:
        assert server.url == lease_settings.nats
        async with asyncio.timeout(60):
            await lease.wait_until_held()
        await lease.stop()


async def test_a_server_that_is_too_old_is_logged_and_tried_again(
    lease_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "MINIMUM_VERSION", (99, 0))
    with structlog.testing.capture_logs() as logs:
        async with hold_lease(lease_settings, "clock") as lease:
            await until(lambda: bool(logs), "the lease logs a warning")
            assert "is too old: tocsin needs 99.0 or newer" in str(logs[0]["error"])
            assert not lease.held
            monkeypatch.setattr(bus_module, "MINIMUM_VERSION", (2, 11))
            async with asyncio.timeout(60):
                await lease.wait_until_held()


async def test_a_renewal_whose_answer_was_lost_is_adopted(lease_settings: Settings, bus: Client) -> None:
    """The test writes the key in the name of the holder, like a renewal whose answer was lost."""
    lease_settings = lease_settings.model_copy(update={"lease_ttl_s": 6.0})
    with structlog.testing.capture_logs() as logs:
        async with hold_lease(lease_settings, "clock") as lease:
            await lease.wait_until_held()
            written = None
            while written is None:
                seq, holder = await lease_module._read_key(bus, lease_settings, lease._subject)
                assert holder == lease.holder
                headers = {"Nats-Expected-Last-Subject-Sequence": str(seq), "Nats-TTL": "10s"}
                written = await lease_module._compare_and_set(
                    bus, lease._subject, lease.holder.encode(), headers, timeout=10
                )

            async def renewed() -> bool:
                return (await lease_module._read_key(bus, lease_settings, lease._subject))[0] > written

            await eventually(renewed, "it renews from the revision of that write")
            assert lease.held
    assert "lease lost" not in [entry["event"] for entry in logs]


async def test_the_deadline_counts_from_before_the_renewal_was_sent(
    lease_settings: Settings, bus: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0

    async def slow_answer(*_: object, timeout: float) -> int:
        nonlocal now_s
        now_s = 100.9
        return 7

    monkeypatch.setattr(lease_module, "steady_s", lambda: now_s)
    monkeypatch.setattr(lease_module, "_compare_and_set", slow_answer)
    lease = Lease(lease_settings, "clock")
    assert await lease._write(bus, 6) == 7
    now_s = 100.99
    assert lease.held
    now_s = 101.0
    assert not lease.held


async def test_a_write_in_progress_at_the_resignation_does_not_restore_the_lease(
    long_ttl: Settings, bus: Client
) -> None:
    lease = await lease_without_thread(long_ttl, bus)
    lease.resign()
    assert await lease._write(bus, 0) is not None
    assert not lease.held


@pytest.mark.parametrize("revision_known", [True, False])
async def test_a_release_finds_the_revision_of_a_cancelled_write(
    long_ttl: Settings, bus: Client, revision_known: bool
) -> None:
    lease = await lease_without_thread(long_ttl, bus)
    first = await lease._take(bus)
    assert first is not None
    assert await lease._write(bus, first) is not None
    await lease._release(bus, first if revision_known else None)
    assert await current_holder(bus, long_ttl, "clock") is None


async def test_a_release_never_deletes_the_key_of_another_holder(long_ttl: Settings, bus: Client) -> None:
    lease = await lease_without_thread(long_ttl, bus)
    await lease._take(bus)
    other = Lease(long_ttl, "clock")
    assert await other._take(bus) is None
    await other._release(bus, None)
    await other._release(bus, 1_000)
    assert await current_holder(bus, long_ttl, "clock") == lease.holder


class ClusterWithoutMajority:
    """A stand-in for a server that has an earlier write of the key and cannot replicate it."""

    async def request(self, *_: object, **__: object) -> Msg:
        answer = {"error": {"code": 400, "err_code": 10164, "description": "wrong last sequence"}}
        return Msg(cast(Client, None), data=json.dumps(answer).encode())


async def test_a_write_that_is_not_replicated_names_the_missing_servers() -> None:
    with pytest.raises(OSError, match="more than half of the NATS servers must run"):
        await _compare_and_set(cast(Client, ClusterWithoutMajority()), "$KV.lease.clock", b"a", {}, 1.0)


async def test_after_an_unexpected_error_the_process_competes_again(
    lease_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, failures = lease_module._ensure_bucket, [ValueError("unexpected")]

    async def fail_once(bus: Client, settings: Settings) -> None:
        if failures:
            raise failures.pop()
        await make(bus, settings)

    monkeypatch.setattr(lease_module, "_ensure_bucket", fail_once)
    async with hold_lease(lease_settings, "clock") as lease:
        async with asyncio.timeout(30):
            await lease.wait_until_held()
    assert not failures


async def test_a_bucket_made_with_other_settings_is_used(lease_settings: Settings, bus: Client) -> None:
    await bus.jetstream().add_stream(
        StreamConfig(
            name=f"KV_{lease_settings.lease_bucket}", subjects=[f"$KV.{lease_settings.lease_bucket}.>"]
        )
    )
    async with hold_lease(lease_settings, "clock") as lease:
        async with asyncio.timeout(30):
            await lease.wait_until_held()


async def test_a_candidate_reports_that_it_cannot_reach_nats_until_it_can(tmp_path: Path) -> None:
    with embedded_nats(tmp_path / "nats") as nats:
        lease_settings = Settings(nats=nats.url, lease_ttl_s=1.0)

    async def compete() -> None:
        async with hold_lease(lease_settings, "clock") as lease:
            await lease.wait_until_held()
            while True:
                beat("clock")
                await asyncio.wait_for(asyncio.Event().wait(), 60)

    service = Service("clock", compete)

    async def status_has(part: str) -> bool:
        return part in (service.problem or "well")

    async with running(service):
        await eventually(lambda: status_has("cannot reach nats"), "its status names the reason")
        with embedded_nats(tmp_path / "nats") as again:
            assert again.url == nats.url
            await eventually(lambda: status_has("well"), "it holds the lease")
            await service.stop()


async def test_stopping_without_nats_does_not_hang(lease_settings: Settings) -> None:
    async with (
        asyncio.timeout(30),
        hold_lease(lease_settings.model_copy(update={"nats": "127.0.0.1:1"}), "clock") as lease,
    ):
        assert not lease.held


async def test_the_key_expires_and_is_renewed_in_time(lease_settings: Settings, bus: Client) -> None:
    messages: asyncio.Queue[Msg] = asyncio.Queue()
    await bus.subscribe(f"$KV.{lease_settings.lease_bucket}.clock", cb=messages.put)
    async with hold_lease(lease_settings, "clock"):
        for _ in range(3):
            message = await asyncio.wait_for(messages.get(), 20)
            assert message.headers is not None
            assert message.headers["Nats-TTL"] == "1000ms"


async def test_without_a_bucket_a_role_has_no_holder(lease_settings: Settings, bus: Client) -> None:
    assert await current_holder(bus, lease_settings, "clock") is None


async def test_a_holder_that_makes_no_progress_gives_its_lease_up_until_it_works_again(
    lease_settings: Settings,
) -> None:
    async with hold_lease(lease_settings, "clock") as stuck:
        await stuck.wait_until_held()
        async with hold_lease(lease_settings, "clock") as other:
            await other.wait_until_held()
            assert not stuck.held
            await until(lambda: other.keep() and not stuck.held, "the other one leads")
        # Its loop still hangs, so it does not take the free lease.
        async with hold_lease(lease_settings, "clock") as third:
            await third.wait_until_held()
            assert not stuck.held
        await stuck.wait_until_held()


async def test_a_key_that_does_not_expire_is_taken_when_its_holder_does_not_renew_it(
    lease_settings: Settings, bus: Client
) -> None:
    """The wall clock of the server was set back after the holder died, so the key lives on."""
    lease = await lease_without_thread(lease_settings, bus)
    await bus.request(f"$KV.{lease_settings.lease_bucket}.clock", b"dead/1/0123abcd")

    async def taken() -> bool:
        lease.keep()
        return await lease._take(bus) is not None

    assert not await taken()
    await eventually(taken, "the key is taken")
    assert lease.held
