"""A seeded plan of faults against three live clocks, and what came of it.

Guarantee: the seed decides which faults happen, in which order and at which point; the machine's speed decides only how
long that takes. A fault inside a transaction is one that found the leader between its lock and its commit.
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

from migrations.runner import migrate
from tests.cdc.publishing import patient
from tests.faults.clocks import WITHIN_S, ClockProcess, Clocks
from tests.faults.workload import Account, account, arm_one_shots, arm_pulses, pause_pulses
from tests.sessions import open_sessions
from tests.waiting import eventually_sync
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

POINTS = ("locked", "appended")


@dataclass(frozen=True)
class Size:
    timers: int
    ahead_s: float
    over_s: float
    faults: tuple[str, ...]


SHORT = Size(
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
LONG = Size(
    20_000,
    8.0,
    20.0,
    tuple(f"{kind} {point}" for kind in ("kill", "freeze", "nats", "postgres") for point in POINTS) * 3
    + ("kill leader", "freeze leader") * 2,
)


@dataclass(frozen=True)
class Summary:
    seed: int
    timers: int
    faults: dict[str, int]
    inside_transaction: int
    zombies_refused: int
    epochs: int
    seconds: float
    account: Account


@contextmanager
def clocks_on(settings: Settings, folder: Path, count: int) -> Iterator[Clocks]:
    clocks = Clocks(settings, folder, count)
    try:
        yield clocks
    except BaseException as error:
        error.add_note(clocks.last_words())
        raise
    finally:
        clocks.close()


def settings_of(servers: Servers, folder: Path) -> Settings:
    """A fresh house on these servers; the shortest lease that NATS can expire."""
    settings = Settings(
        postgres=servers.postgres_url,
        nats=servers.nats_url,
        namespace="faults",
        lease_ttl_s=1.0,
        log_format="json",
    )
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(_migrate(patient(settings)))
    return settings


async def _migrate(settings: Settings) -> None:
    async with open_sessions(settings) as open_session:
        await migrate(await open_session("migrations"))


def run_plan(servers: Servers, folder: Path, seed: int, size: Size) -> Summary:
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
            let_work_go_on(chance.uniform(0, 0.3))
            inflicted.inflict(fault)
        drain(clocks)
        asyncio.run(pause_pulses(settings))
        (epochs,) = clocks.read("select epoch from tocsin.log_head")
    return Summary(
        seed=seed,
        timers=size.timers,
        faults=dict(Counter(fault.split()[0] for fault in faults)),
        inside_transaction=inflicted.inside_transaction,
        zombies_refused=inflicted.zombies_refused,
        epochs=epochs,
        seconds=round(time.monotonic() - began, 1),
        account=account(settings.postgres, firsts),
    )


class Faults:
    def __init__(self, servers: Servers, clocks: Clocks) -> None:
        self._servers = servers
        self._clocks = clocks
        self.inside_transaction = 0
        self.zombies_refused = 0

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
        """Until another clock has fired; then the frozen one goes on where it stopped, and must be refused."""
        zombie = self._clocks.trap(point, "stop")
        zombie.wait_until_frozen()
        self._clocks.wait_until_another_fires(zombie.epoch)
        zombie.thaw()
        eventually_sync(zombie.refused_since_trapped, f"the zombie {zombie.pid} is refused", WITHIN_S)
        self.zombies_refused += 1
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
        """Wherever it is: outside a transaction it finds out by its lease, and has nothing to be refused."""
        leader = self._clocks.leader()
        leader.freeze()
        self._clocks.wait_until_another_fires(leader.epoch)
        leader.thaw()


def drain(clocks: Clocks) -> None:
    """All faults are healed: every one-shot ends, and the pulses are past this instant."""
    healed_at = clocks.read("select tocsin.instant()")[0].isoformat()
    open_ones = (
        "select count(*) from tocsin.timer t join tocsin.schedule s on s.id::text = t.ref"
        f" where s.name like 'once-%' or t.nominal_at < '{healed_at}'"
    )
    eventually_sync(lambda: clocks.look(open_ones) == (0,), "the backlog drains", WITHIN_S)


def let_work_go_on(seconds: float) -> None:
    """The one place where the plan lets time pass: so that a fault does not always follow a takeover at once."""
    threading.Event().wait(seconds)
