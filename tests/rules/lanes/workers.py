"""Workers of the data lane as processes that are stopped inside their batches, killed, frozen and replaced."""

from __future__ import annotations

from tests.faults.clocks import WITHIN_S, ClockProcess, Clocks
from tests.wait import eventually_sync
from tocsin.embedded import Servers


class LaneProcess(ClockProcess):
    MODULE = "tests.rules.lanes.lane_process"


class Workers(Clocks):
    PROCESS = LaneProcess

    def wait_until_held_by(self, pids: set[int]) -> None:
        """Wait until the living processes hold every partition, and each of them holds some."""

        def held() -> bool:
            row = self.try_read(
                "select count(*), coalesce(array_agg(distinct split_part(holder, '/', 2)::integer), '{}')"
                " from tocsin.lane_partition where held_until > tocsin.instant()"
            )
            return row is not None and row[0] == 8 and set(row[1]) == pids

        eventually_sync(held, f"{pids} hold everything", WITHIN_S)

    def wait_for_effects(self, count: int) -> None:
        def are_there() -> bool:
            row = self.try_read("select count(*) from public.effect")
            return row is not None and row[0] >= count

        eventually_sync(are_there, f"{count} effects", WITHIN_S)

    def others(self, process: ClockProcess) -> set[int]:
        return {other.pid for other in self.processes} - {process.pid}


def inflict(servers: Servers, workers: Workers, fault: str) -> None:
    kind, _, point = fault.partition(" ")
    if kind in ("nats", "postgres"):
        server = servers.nats if kind == "nats" else servers.postgres
        workers.trap(point, "hold")
        server.kill()
        workers.open_traps()
        server.start()
        return
    trapped = workers.trap(point, kind)
    if kind == "kill":
        trapped.wait_until_dead()
        workers.replace(trapped)
        return
    trapped.wait_until_frozen()
    workers.wait_until_held_by(workers.others(trapped))
    trapped.thaw()
