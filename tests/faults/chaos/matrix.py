"""The matrix: every fault, the parts that it hits, and the signals that must name it."""

from __future__ import annotations

import ctypes.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.faults.chaos import process_faults, server_faults, slow_disk
from tests.faults.chaos.installation import PARTS, Layout
from tests.faults.chaos.stage import Stage

_FAKETIME = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
)
FAKETIME_VARIABLE = "FAKETIME_LIBRARY"
# The subjects of the doctor and the health of a part that cannot work.
_DOCTOR = {
    "clock": "^clock: no leader|^timers:",
    "cdc": "^cdc: no leader|^log|^stream check",
    "worker": "^lane",
}


@dataclass(frozen=True)
class Fault:
    name: str
    description: str
    inflict: Callable[[Stage], None]
    parts: tuple[str, ...] = ("all",)
    standby: str = ""
    small_disk: str = ""
    is_cluster: bool = False
    is_clock_step: bool = False
    stops_data: bool = False
    """The producer sends nothing for longer than the deadline, so its series must become stale."""
    allowed: frozenset[str] = frozenset()
    """Costs that the documentation names for this fault, as `doubled effects`."""
    is_slow_disk: bool = False
    """Its parts are servers that sync everything they acknowledge."""
    doctor: Callable[[str], str] = lambda _: ""
    """A pattern of the red line that must name the cause; empty if the fault is none for an operator."""
    metrics: Callable[[str], str] = lambda _: ""

    def layout(self, part: str) -> Layout:
        return Layout(
            standby=self.standby,
            small_disk=self.small_disk,
            is_cluster=self.is_cluster,
            faketime=part if self.is_clock_step else "",
            library=faketime_library() if self.is_clock_step else "",
            slow_disk=part if self.is_slow_disk else "",
        )

    def reason_to_skip(self) -> str:
        if self.is_slow_disk and (reason := slow_disk.reason_to_skip()):
            return reason
        if self.small_disk and (os.geteuid() != 0 or shutil.which("mount") is None):
            return "needs root, to mount a file system of a fixed size"
        if self.is_clock_step and not faketime_library():
            return f"needs libfaketime (package `faketime`, or its path in {FAKETIME_VARIABLE})"
        return ""


def faketime_library() -> str:
    """The path of libfaketime; empty if there is none."""
    candidates = (
        os.environ.get(FAKETIME_VARIABLE, ""),
        *_FAKETIME,
        ctypes.util.find_library("faketime") or "",
    )
    return next((path for path in candidates if path and Path(path).exists()), "")


def _of_link(server: str) -> Callable[[str], str]:
    """A part that is cut off reports its server. A consumer has no endpoint of ours."""

    def pattern(part: str) -> str:
        return "" if part == "consumer" else f"^{part} .*{server}|no leader: {part}|tocsin_lane_behind"

    return pattern


def _doctor_of_part(part: str) -> str:
    return _DOCTOR.get(part, "")


def _down(part: str) -> str:
    return "" if part == "consumer" else f"^{part} . is down"


def _link_fault(kind: str, server: str) -> Fault:
    inflict = process_faults.cut if kind == "cut" else process_faults.stall
    what = "connections are reset and refused" if kind == "cut" else "packets are dropped"
    name = "Postgres" if server == "postgres" else "NATS"
    return Fault(
        f"{kind}-{server}",
        f"no network between the part and {name}: {what}",
        partial(inflict, server=server),
        PARTS,
        doctor=_doctor_of_part,
        metrics=_of_link(server),
    )


FAULTS = (
    Fault("kill", "SIGKILL of the leader, or of one process", process_faults.kill, PARTS),
    Fault(
        "kill-repeatedly",
        "SIGKILL of all processes of the part, again and again",
        process_faults.kill_repeatedly,
        PARTS,
    ),
    Fault(
        "freeze",
        "SIGSTOP of the leader, or of one process, then SIGCONT",
        process_faults.freeze,
        PARTS,
        metrics=_down,
    ),
    Fault(
        "terminate-backends",
        "`pg_terminate_backend` of all sessions of the part, three times",
        process_faults.terminate_backends,
        PARTS,
    ),
    *(_link_fault(kind, server) for kind in ("cut", "stall") for server in ("postgres", "nats")),
    Fault(
        "cut-nats-producer",
        "no network between the producer and NATS",
        partial(process_faults.cut, server="nats"),
        ("producer",),
        stops_data=True,
    ),
    Fault(
        "cut-receiver",
        "no network between the worker and the receiver of webhooks",
        partial(process_faults.cut, server="receiver"),
        ("worker",),
    ),
    Fault("delay", "50 ms more in each direction, to Postgres and NATS", process_faults.delay, PARTS),
    Fault(
        "postgres-crash",
        "kill -9 of Postgres, then a start",
        server_faults.crash_postgres,
        doctor=lambda _: "^postgres:",
        metrics=lambda _: "postgres|tocsin_database_up 0",
    ),
    Fault(
        "failover-sync",
        "kill -9 of Postgres, promotion of a synchronous standby",
        server_faults.fail_over,
        standby="sync",
        doctor=lambda _: "^postgres:",
        metrics=lambda _: "postgres|tocsin_database_up 0|no leader",
    ),
    Fault(
        "failover-sync-cut",
        "the same after the standby was cut off and sessions ended whose commits waited for it",
        server_faults.fail_over_after_cut,
        standby="sync",
        doctor=lambda _: "^(postgres|timers|clock):",
        metrics=lambda _: "overdue|no leader|postgres",
    ),
    Fault(
        "failover-async",
        "the same with a standby that is 3 s behind: commits are lost",
        server_faults.fail_over_with_loss,
        standby="async",
        # An event that was lost and fired again has its old id at a new seq, and an inbox counts by seq.
        allowed=frozenset({"doubled effects", "out_of_order effects"}),
        doctor=lambda _: "^(log|stream check):",
        metrics=lambda _: "tocsin_stream_problem",
    ),
    Fault(
        "nats-crash",
        "kill -9 of NATS, then a start",
        server_faults.crash_nats,
        doctor=lambda _: "^nats:",
        metrics=lambda _: "nats",
    ),
    Fault(
        "nats-leader-crash",
        "kill -9 of the leader of the data stream in a NATS cluster of three, then a start",
        server_faults.crash_nats_leader,
        is_cluster=True,
    ),
    Fault(
        "nats-quorum-loss",
        "kill -9 of two servers of a NATS cluster of three, then a start",
        server_faults.lose_nats_quorum,
        is_cluster=True,
        doctor=lambda _: "^nats|jetstream",
        metrics=lambda _: "nats|jetstream",
    ),
    Fault(
        "nats-rollback",
        "the store of NATS is replaced by a copy of some seconds ago",
        server_faults.roll_back_nats,
    ),
    Fault(
        "connections-exhausted",
        "`max_connections` used up by others",
        server_faults.exhaust_connections,
        doctor=lambda _: "too many (clients|connections)",
        metrics=lambda _: "too many (clients|connections)|tocsin_database_up 0",
    ),
    Fault(
        "stranger-timer",
        "a transaction of a stranger holds the row of one timer",
        server_faults.hold_timer,
        metrics=lambda _: "tocsin_timers_overdue",
    ),
    Fault(
        "stranger-log", "a transaction of a stranger holds the row of `log_head`", server_faults.hold_log_head
    ),
    Fault(
        "disk-full-postgres",
        "no space on the disk of Postgres",
        server_faults.fill_postgres,
        small_disk="postgres",
        doctor=lambda _: "no space|disk",
        metrics=lambda _: "no space|disk",
    ),
    Fault(
        "disk-full-nats",
        "no space on the disk of NATS",
        server_faults.fill_nats,
        small_disk="nats",
        doctor=lambda _: "^nats|jetstream|^log|^lane|^stream",
        metrics=lambda _: "nats|jetstream|publish_lag|behind|no leader",
    ),
    Fault(
        "clock-step",
        "the wall clock of the part steps 300 s ahead, then 300 s back",
        server_faults.step_clock,
        PARTS,
        is_clock_step=True,
        metrics=lambda part: "tocsin_clock_offset_seconds" if part == "clock" else "",
    ),
    Fault(
        "slow-disk",
        "each sync of Postgres or NATS takes 200 ms more",
        server_faults.slow_down_disk,
        ("postgres", "nats"),
        is_slow_disk=True,
        doctor=lambda part: "^(timers|commits|lane)" if part == "postgres" else "^(nats|jetstream|lane|log)",
        metrics=lambda _: "overdue|publish_lag|behind|postgres|nats",
    ),
)
