"""A lease: one holder at a time, handed over when it stops, taken over when it dies."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import nats
import pytest
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

from clock import lease as lease_module
from clock.lease import Lease, current_holder, hold_lease
from tests.paths import ROOT
from tests.wait import eventually
from tocsin.core import bus as bus_module
from tocsin.core.service import Service, beat, running
from tocsin.core.settings import Settings
from tocsin.embedded import Servers, embedded_nats

_numbers = itertools.count(1)


@pytest.fixture
def place(servers: Servers) -> Settings:
    """A namespace of its own in NATS; no database is needed."""
    return Settings(nats=servers.nats_url, namespace=f"lease_{next(_numbers)}", lease_ttl_s=1.0)


@pytest.fixture
def calm(place: Settings) -> Settings:
    """A TTL that no stall of the machine outlasts, for what must not expire by accident."""
    return place.model_copy(update={"lease_ttl_s": 30.0})


@pytest.fixture
async def bus(place: Settings) -> AsyncIterator[Client]:
    connected = await nats.connect(place.nats)
    yield connected
    await connected.close()


async def until(condition: Callable[[], bool], what: str) -> None:
    async def holds() -> bool:
        return condition()

    await eventually(holds, what)


async def unstarted(place: Settings, bus: Client) -> Lease:
    """A lease whose steps the test takes itself."""
    await lease_module._ensure_bucket(bus, place)
    return Lease(place, "clock")


async def test_of_two_candidates_one_holds_and_a_clean_stop_hands_over(calm: Settings, bus: Client) -> None:
    async with hold_lease(calm, "clock") as first:
        await first.wait_until_held()
        assert await current_holder(bus, calm, "clock") == first.holder
        async with hold_lease(calm, "clock") as second:
            await first.stop()
            assert not first.held
            async with asyncio.timeout(30):
                await second.wait_until_held()
            assert await current_holder(bus, calm, "clock") == second.holder
    assert await current_holder(bus, calm, "clock") is None


async def test_a_candidate_does_not_take_what_another_holds(calm: Settings, bus: Client) -> None:
    first = await unstarted(calm, bus)
    second = await unstarted(calm, bus)
    assert await first._take(bus) is not None
    assert first.held
    assert await second._take(bus) is None
    assert not second.held


async def test_roles_are_held_independently(place: Settings) -> None:
    async with hold_lease(place, "clock") as clock, hold_lease(place, "cdc") as cdc:
        await clock.wait_until_held()
        async with asyncio.timeout(30):
            await cdc.wait_until_held()


async def test_a_killed_holder_is_replaced_when_its_key_expires(place: Settings) -> None:
    holder = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.clock.lease_process", place.nats, place.namespace),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"held\n"
        async with hold_lease(place, "clock") as second:
            holder.kill()
            async with asyncio.timeout(30):
                await second.wait_until_held()
    finally:
        if holder.returncode is None:
            holder.kill()
        await holder.wait()


async def test_a_frozen_renewal_ends_belief_by_the_deadline_and_another_takes_over(place: Settings) -> None:
    thaw = threading.Event()
    async with hold_lease(place, "clock") as frozen:
        await frozen.wait_until_held()
        assert frozen._loop is not None
        frozen._loop.call_soon_threadsafe(thaw.wait)
        try:
            async with hold_lease(place, "clock") as second:
                async with asyncio.timeout(30):
                    await second.wait_until_held()
                assert not frozen.held, "two believed at once"
        finally:
            thaw.set()


async def test_a_lease_that_resigned_is_given_back_and_stood_for_again(place: Settings) -> None:
    async with hold_lease(place, "clock") as lease:
        await lease.wait_until_held()
        subscriber = await nats.connect(place.nats)
        releases = await subscriber.subscribe(f"$KV.{place.lease_bucket}.clock")
        await subscriber.flush()
        lease.resign()
        assert not lease.held

        async def released() -> bool:
            message = await releases.next_msg(timeout=20)
            return (message.headers or {}).get("KV-Operation") == "DEL"

        await eventually(released, "the key is given back")
        async with asyncio.timeout(30):
            await lease.wait_until_held()
        await subscriber.close()


async def test_resigning_without_the_lease_does_not_spoil_the_next_term(calm: Settings, bus: Client) -> None:
    lease = await unstarted(calm, bus)
    lease.resign()
    assert await lease._take(bus) is not None
    assert lease.held
    assert not lease._resigned.is_set(), "it would be given back at once"


async def test_a_restart_of_nats_ends_the_lease_at_most_for_a_while(tmp_path: Path) -> None:
    with embedded_nats(tmp_path) as server:
        place = Settings(nats=server.url, namespace="restarted", lease_ttl_s=1.0)
        lease = Lease(place, "clock")
        lease.start()
        await lease.wait_until_held()
    await until(lambda: not lease.held, "the deadline passes while nats is away")
    with embedded_nats(tmp_path) as server:
        assert server.url == place.nats
        async with asyncio.timeout(60):
            await lease.wait_until_held()
        await lease.stop()


async def test_a_server_that_is_too_old_is_said_and_waited_out(
    place: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "MINIMUM_VERSION", (99, 0))
    with structlog.testing.capture_logs() as logs:
        async with hold_lease(place, "clock") as lease:
            await until(lambda: bool(logs), "the lease complains")
            assert "is too old: tocsin needs 99.0 or newer" in str(logs[0]["error"])
            assert not lease.held
            monkeypatch.setattr(bus_module, "MINIMUM_VERSION", (2, 11))
            async with asyncio.timeout(60):
                await lease.wait_until_held()


async def test_a_renewal_whose_answer_was_lost_is_adopted(place: Settings, bus: Client) -> None:
    """Somebody writes the key in the holder's name, as its own unanswered renewal would have."""
    place = place.model_copy(update={"lease_ttl_s": 6.0})
    with structlog.testing.capture_logs() as logs:
        async with hold_lease(place, "clock") as lease:
            await lease.wait_until_held()
            written = None
            while written is None:
                seq, holder = await lease_module._read_key(bus, place, lease._subject)
                assert holder == lease.holder
                headers = {"Nats-Expected-Last-Subject-Sequence": str(seq), "Nats-TTL": "10s"}
                written = await lease_module._compare_and_set(
                    bus, lease._subject, lease.holder.encode(), headers, timeout=10
                )

            async def renewed() -> bool:
                return (await lease_module._read_key(bus, place, lease._subject))[0] > written

            await eventually(renewed, "it goes on from the write it did not know of")
            assert lease.held
    assert "lease lost" not in [entry["event"] for entry in logs]


async def test_the_deadline_counts_from_before_the_renewal_was_sent(
    place: Settings, bus: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0

    async def slow_answer(*_: object, timeout: float) -> int:
        nonlocal now_s
        now_s = 100.9
        return 7

    monkeypatch.setattr(lease_module, "steady_s", lambda: now_s)
    monkeypatch.setattr(lease_module, "_compare_and_set", slow_answer)
    lease = Lease(place, "clock")
    assert await lease._write(bus, 6) == 7
    now_s = 100.99
    assert lease.held
    now_s = 101.0
    assert not lease.held


async def test_a_write_under_way_when_it_resigned_does_not_bring_the_belief_back(
    calm: Settings, bus: Client
) -> None:
    lease = await unstarted(calm, bus)
    lease.resign()
    assert await lease._write(bus, 0) is not None
    assert not lease.held


@pytest.mark.parametrize("known", [True, False])
async def test_a_release_finds_the_write_that_was_cancelled_under_way(
    calm: Settings, bus: Client, known: bool
) -> None:
    lease = await unstarted(calm, bus)
    first = await lease._take(bus)
    assert first is not None
    assert await lease._write(bus, first) is not None
    await lease._release(bus, first if known else None)
    assert await current_holder(bus, calm, "clock") is None


async def test_a_release_never_takes_the_key_from_another(calm: Settings, bus: Client) -> None:
    lease = await unstarted(calm, bus)
    await lease._take(bus)
    other = Lease(calm, "clock")
    assert await other._take(bus) is None
    await other._release(bus, None)
    await other._release(bus, 1_000)
    assert await current_holder(bus, calm, "clock") == lease.holder


async def test_an_error_that_nobody_expected_does_not_end_the_campaign(
    place: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, failures = lease_module._ensure_bucket, [ValueError("unexpected")]

    async def fail_once(bus: Client, settings: Settings) -> None:
        if failures:
            raise failures.pop()
        await make(bus, settings)

    monkeypatch.setattr(lease_module, "_ensure_bucket", fail_once)
    async with hold_lease(place, "clock") as lease:
        async with asyncio.timeout(30):
            await lease.wait_until_held()
    assert not failures


async def test_a_bucket_made_with_other_settings_is_used(place: Settings, bus: Client) -> None:
    await bus.jetstream().add_stream(
        StreamConfig(name=f"KV_{place.lease_bucket}", subjects=[f"$KV.{place.lease_bucket}.>"])
    )
    async with hold_lease(place, "clock") as lease:
        async with asyncio.timeout(30):
            await lease.wait_until_held()


async def test_a_candidate_that_nats_does_not_answer_says_so_until_it_does(tmp_path: Path) -> None:
    with embedded_nats(tmp_path / "nats") as nats:
        place = Settings(nats=nats.url, lease_ttl_s=1.0)

    async def stand() -> None:
        async with hold_lease(place, "clock") as lease:
            await lease.wait_until_held()
            while True:
                beat("clock")
                await asyncio.wait_for(asyncio.Event().wait(), 60)

    service = Service("clock", stand)

    async def says(part: str) -> bool:
        return part in (service.problem or "well")

    async with running(service):
        await eventually(lambda: says("cannot reach nats"), "it says why it waits")
        with embedded_nats(tmp_path / "nats") as again:
            assert again.url == nats.url
            await eventually(lambda: says("well"), "it holds the lease")
            await service.stop()


async def test_stopping_without_nats_does_not_hang(place: Settings) -> None:
    async with (
        asyncio.timeout(30),
        hold_lease(place.model_copy(update={"nats": "127.0.0.1:1"}), "clock") as lease,
    ):
        assert not lease.held


async def test_the_key_expires_and_is_renewed_in_time(place: Settings, bus: Client) -> None:
    messages: asyncio.Queue[Msg] = asyncio.Queue()
    await bus.subscribe(f"$KV.{place.lease_bucket}.clock", cb=messages.put)
    async with hold_lease(place, "clock"):
        for _ in range(3):
            message = await asyncio.wait_for(messages.get(), 20)
            assert message.headers is not None
            assert message.headers["Nats-TTL"] == "1000ms"


async def test_without_a_bucket_nobody_holds_a_role(place: Settings, bus: Client) -> None:
    assert await current_holder(bus, place, "clock") is None
