"""A service runs until it is stopped, and is restarted when it crashes."""

from __future__ import annotations

import asyncio
import re

import psycopg
import pytest
import structlog

from tests.cancellation import swallow_one_cancellation
from tests.wait import eventually
from tocsin.core import service as service_module
from tocsin.core.errors import Unreachable
from tocsin.core.service import Service, beat, end_tasks, running


class Scripted:
    """Fails as scripted, then runs until it is cancelled."""

    def __init__(self, *failures: BaseException) -> None:
        self._failures = list(failures)
        self.runs = 0
        self.settled = asyncio.Event()
        self.cleaned_up = False

    async def run(self) -> None:
        self.runs += 1
        if self._failures:
            raise self._failures.pop(0)
        self.settled.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cleaned_up = True


@pytest.fixture(autouse=True)
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The requested backoffs, which take no time."""
    asked: list[float] = []

    async def take_at_once(delay_s: float) -> None:
        asked.append(delay_s)

    monkeypatch.setattr(service_module, "_pause", take_at_once)
    return asked


async def test_a_crash_is_followed_by_a_restart_with_a_backoff_that_doubles(delays: list[float]) -> None:
    scripted = Scripted(*(RuntimeError(str(number)) for number in range(8)))
    service = Service("scripted", scripted.run)
    async with running(service), asyncio.timeout(30):
        await scripted.settled.wait()
        assert service.running
    assert (scripted.runs, service.restarts, service.last_error) == (9, 8, "RuntimeError: 7")
    assert delays[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert scripted.cleaned_up
    assert not service.running


async def test_after_a_healthy_period_the_backoff_starts_again(
    delays: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "_HEALTHY_S", -1.0)
    scripted = Scripted(*(RuntimeError() for _ in range(3)))
    async with running(Service("scripted", scripted.run)), asyncio.timeout(30):
        await scripted.settled.wait()
    assert delays[:3] == [0.1, 0.1, 0.1]


async def test_a_crash_has_a_traceback_and_an_outage_has_none() -> None:
    frozen = psycopg.errors.IdleInTransactionSessionTimeout("terminating connection")
    scripted = Scripted(ValueError("a defect"), Unreachable("postgres is away"), OSError("reset"), frozen)
    with structlog.testing.capture_logs() as logs:
        async with running(Service("scripted", scripted.run)), asyncio.timeout(30):
            await scripted.settled.wait()
    assert [(entry["event"], bool(entry.get("exc_info"))) for entry in logs] == [
        ("service crashed", True),
        *[("service waits", False)] * 3,
    ]


async def test_a_cancellation_from_inside_is_a_crash_and_not_the_end() -> None:
    scripted = Scripted(asyncio.CancelledError())
    service = Service("scripted", scripted.run)
    async with running(service), asyncio.timeout(30):
        await scripted.settled.wait()
    assert service.restarts == 1


async def test_stopping_waits_for_the_cleanup() -> None:
    began, may_end, ended = asyncio.Event(), asyncio.Event(), False

    async def run() -> None:
        nonlocal ended
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
            ended = True

    service = Service("slow", run)
    service.start()
    await began.wait()
    stopping = asyncio.create_task(service.stop())

    async def cancelled() -> bool:
        return service._task is not None and service._task.cancelling() > 0

    await eventually(cancelled, "the stop has begun")
    assert not stopping.done()
    may_end.set()
    await stopping
    assert ended


async def test_a_cleanup_that_fails_is_not_started_again() -> None:
    runs = 0
    began = asyncio.Event()

    async def run() -> None:
        nonlocal runs
        runs += 1
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            raise OSError("the connection was gone already")

    service = Service("messy", run)
    service.start()
    await began.wait()
    async with asyncio.timeout(30):
        await service.stop()
    assert runs == 1


async def test_a_task_that_is_cancelled_while_it_stops_a_service_is_cancelled() -> None:
    began, refuses_to_end = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            refuses_to_end.set()
            await asyncio.Event().wait()

    service = Service("stubborn", run)
    service.start()
    await began.wait()
    stopping = asyncio.create_task(service.stop())
    await refuses_to_end.wait()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert service._task is not None
    service._task.cancel()
    await asyncio.wait({service._task})


@pytest.mark.parametrize("how", ["stop", "end_tasks"])
async def test_a_task_that_swallows_a_cancellation_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(service_module, "_CANCEL_AGAIN_S", 0.01)
    service = Service("deaf", swallow_one_cancellation)
    task = asyncio.create_task(swallow_one_cancellation())
    service.start()
    await asyncio.wait([task], timeout=0.01)
    async with asyncio.timeout(30):
        await (service.stop() if how == "stop" else end_tasks([task]))
    assert not service.running if how == "stop" else task.cancelled()
    await asyncio.gather(service.stop(), end_tasks([task]))


async def test_a_task_that_is_cancelled_while_it_ends_others_waits_for_them_first() -> None:
    began, ending, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            ending.set()
            await may_end.wait()

    task = asyncio.create_task(run())
    await began.wait()
    waiting = asyncio.create_task(end_tasks([task]))
    await ending.wait()
    waiting.cancel()
    await asyncio.wait([waiting], timeout=0.05)
    assert not waiting.done()
    assert not task.done(), "its cleanup is not cancelled for that"
    may_end.set()
    await asyncio.wait([waiting])
    assert waiting.cancelled()


async def test_a_service_that_returns_has_ended() -> None:
    done = asyncio.Event()

    async def run() -> None:
        done.set()

    service = Service("short", run)
    service.start()
    await done.wait()
    await service.stop()
    assert (service.running, service.restarts) == (False, 0)
    await service.stop()


async def test_a_service_is_not_started_twice_and_may_be_started_again() -> None:
    scripted = Scripted()
    service = Service("one", scripted.run)
    async with running(service):
        with pytest.raises(RuntimeError, match="the service 'one' is running already"):
            service.start()
    async with running(service), asyncio.timeout(30):
        await scripted.settled.wait()


async def test_all_are_stopped_when_the_block_fails() -> None:
    one, two = Scripted(), Scripted()

    async def fail() -> None:
        async with running(Service("one", one.run), Service("two", two.run)), asyncio.timeout(30):
            await one.settled.wait()
            await two.settled.wait()
            raise LookupError("the block failed")

    with pytest.raises(LookupError):
        await fail()
    assert one.cleaned_up
    assert two.cleaned_up


def problem(service: Service) -> str | None:
    """A call, so that mypy does not narrow the type between two reads."""
    return service.problem


async def test_a_service_has_a_problem_until_each_loop_has_run_and_again_when_one_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripted = Scripted(Unreachable("postgres is away"))
    service = Service("scripted", scripted.run)
    assert problem(service) == "it is not running"
    async with running(service), asyncio.timeout(30):
        assert problem(service) == "it is starting"
        await scripted.settled.wait()
        assert problem(service) == "postgres is away", "it was restarted, and no loop has run yet"
        service.beat("lanes", "", 0.0)
        assert problem(service) is None
        service.beat("ingest", "nats is away", 0.0)
        assert problem(service) == "nats is away"
        service.beat("ingest", "", 60.0)
        assert problem(service) is None
        monkeypatch.setattr(service_module, "_LONGEST_BEAT_S", 0.0)
        reported = problem(service) or ""
        assert re.fullmatch(r"lanes has not run for \d+ s", reported), "the other reported a rest"


async def test_a_heartbeat_belongs_to_the_service_of_its_loop() -> None:
    began = asyncio.Event()

    async def part() -> None:
        beat("part", "it waits")
        began.set()
        await asyncio.Event().wait()

    async def run() -> None:
        await asyncio.create_task(part())

    beat("no service")
    one, other = Service("one", run), Service("other", asyncio.Event().wait)  # type: ignore[arg-type]
    async with running(one, other), asyncio.timeout(30):
        await began.wait()
        assert one.problem == "it waits"
        assert other.problem == "it is starting"


async def test_a_service_is_stuck_when_a_loop_hangs_and_not_while_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()

    async def run() -> None:
        beat("fire", waiting_for="postgres is away")
        begun.set()
        await asyncio.Event().wait()

    service = Service("waiting", run)
    async with running(service):
        await begun.wait()
        waits = service.problem, service.is_stuck
        monkeypatch.setattr(service_module, "_LONGEST_BEAT_S", -1.0)
        hangs = service.problem, service.is_stuck
    assert waits == ("postgres is away", False)
    assert hangs == ("fire has not run for 0 s", True)


async def test_a_service_that_does_not_run_is_stuck() -> None:
    assert Service("not started", asyncio.Event().wait).is_stuck  # type: ignore[arg-type]
