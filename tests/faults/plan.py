"""A seeded plan of faults against three live clocks, and its summary.

Guarantee: the seed decides which faults happen, in which order and at which point. The speed of the
machine decides only how long that takes. A fault inside a transaction hits the leader between its lock
and its commit.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrations.roles.create import create_roles
from migrations.runner import migrate
from tests.cdc.published_records import with_long_timeouts
from tests.faults.clocks import WITHIN_S, ClockProcess, Clocks
from tests.faults.workload import Account, account, arm_one_shots, arm_pulses, pause_pulses
from tests.sessions import open_sessions
from tests.wait import eventually_sync
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

POINTS = ("locked", "appended")


@dataclass(frozen=True)
class PlanSize:
    timers: int
    ahead_s: float
    over_s: float
    faults: tuple[str, ...]


SHORT = PlanSize(
    2_000,
    2.0,
    10.0,
    (
        "kill locked",
        "kill appended",
        "freeze locked",
        "freeze appended",
        "nats appended",
        "postgres appended",
        "kill leader",
        "freeze leader",
    ),
)
LONG = PlanSize(
    20_000,
    8.0,
    20.0,
    tuple(f"{kind} {point}" for kind in ("kill", "freeze", "nats", "postgres") for point in POINTS) * 3
    + ("kill leader", "freeze leader") * 2,
)


@dataclass(frozen=True)
class PlanSummary:
    seed: int
    timers: int
    faults: dict[str, int]
    inside_transaction: int
    zombies_rejected: int
    epochs: int
    seconds: float
    account: Account


@contextmanager
def clocks_on(settings: Settings, folder: Path, count: int) -> Iterator[Clocks]:
    clocks = Clocks(settings, folder, count)
    try:
        yield clocks
    except BaseException as error:
        error.add_note(clocks.log_ends())
        raise
    finally:
        clocks.close()


def settings_of(servers: Servers, folder: Path) -> Settings:
    """The settings of a new instance on these servers, with the shortest lease that NATS can expire."""
    settings = Settings(
        postgres=servers.postgres_url,
        postgres_roles=True,
        nats=servers.nats_url,
        namespace="faults",
        lease_ttl_s=1.0,
        log_format="json",
    )
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(_migrate(with_long_timeouts(settings)))
    return settings


async def _migrate(settings: Settings) -> None:
    async with open_sessions(settings) as open_session:
        connection = await open_session("migrations")
        await migrate(connection)
        await create_roles(connection)


def run_plan(servers: Servers, folder: Path, seed: int, size: PlanSize) -> PlanSummary:
    began = time.monotonic()
    settings = settings_of(servers, folder)
    firsts = asyncio.run(arm_pulses(settings))
    chance = random.Random(seed)
    faults = list(size.faults)
    chance.shuffle(faults)
    with clocks_on(settings, folder, 3) as clocks:
        clocks.leader()
        arm_one_shots(settings.postgres, size.timers, size.ahead_s, size.over_s)
        inflicted = Faults(servers, clocks)
        for fault in faults:
            let_time_pass(chance.uniform(0, 0.3))
            inflicted.inflict(fault)
        drain(clocks)
        asyncio.run(pause_pulses(settings))
        (epochs,) = clocks.read("select epoch from tocsin.log_head")
    return PlanSummary(
        seed=seed,
        timers=size.timers,
        faults=dict(Counter(fault.split()[0] for fault in faults)),
        inside_transaction=inflicted.inside_transaction,
        zombies_rejected=inflicted.zombies_rejected,
        epochs=epochs,
        seconds=round(time.monotonic() - began, 1),
        account=account(settings.postgres, firsts),
    )


class Faults:
    def __init__(self, servers: Servers, clocks: Clocks) -> None:
        self._servers = servers
        self._clocks = clocks
        self.inside_transaction = 0
        self.zombies_rejected = 0

    def inflict(self, fault: str) -> None:
        kind, _, point = fault.partition(" ")
        if point == "leader":
            (self._kill_leader if kind == "kill" else self._freeze_leader)()
            return
        if kind == "kill":
            killed = self._clocks.trap(point, "kill")
            killed.wait_until_dead()
            self._clocks.replace(killed)
        elif kind == "freeze":
            self.freeze_inside(point)
        else:
            self._restart_inside(kind, point)
        self.inside_transaction += 1

    def freeze_inside(self, point: str) -> ClockProcess:
        """Freeze the leader until another clock has fired. Then it continues, and must be rejected."""
        zombie = self._clocks.trap(point, "stop")
        zombie.wait_until_frozen()
        self._clocks.wait_until_another_fires(zombie.epoch)
        zombie.thaw()
        eventually_sync(zombie.is_rejected_since_trapped, f"the zombie {zombie.pid} is rejected", WITHIN_S)
        self.zombies_rejected += 1
        return zombie

    def _restart_inside(self, kind: str, point: str) -> None:
        server = self._servers.nats if kind == "nats" else self._servers.postgres
        self._clocks.trap(point, "hold")
        server.kill()
        self._clocks.open_traps()
        server.start()

    def _kill_leader(self) -> None:
        self._clocks.replace(self._clocks.leader())

    def _freeze_leader(self) -> None:
        """Freeze the leader at any point. Outside of a transaction it notices the loss of its lease."""
        leader = self._clocks.leader()
        leader.freeze()
        self._clocks.wait_until_another_fires(leader.epoch)
        leader.thaw()


def drain(clocks: Clocks) -> None:
    """Wait, when all faults are over, until every one-shot has ended and the pulses are past this instant."""
    faults_ended_at = clocks.read("select tocsin.instant()")[0].isoformat()
    pending = (
        "select count(*) from tocsin.timer t join tocsin.schedule s on s.id::text = t.ref"
        f" where s.name like 'once-%' or t.nominal_at < '{faults_ended_at}'"
    )
    eventually_sync(lambda: clocks.try_read(pending) == (0,), "the backlog drains", WITHIN_S)


def let_time_pass(seconds: float) -> None:
    """Let time pass, so that a fault does not always follow a takeover immediately."""
    threading.Event().wait(seconds)
