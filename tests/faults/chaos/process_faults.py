"""Faults of processes and of their sessions and links."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from tests.faults.chaos.stage import Stage

_DELAY_S = 0.05
_BETWEEN_KILLS_S = 1.5


def kill(stage: Stage) -> None:
    codes = stage.chaos.processes.kill(stage.victim())
    stage.evidence["killed"] = codes.count(-signal.SIGKILL)


def kill_repeatedly(stage: Stage) -> None:
    """Kill all processes of the part again and again: each start may be the moment of the next kill."""
    until_s = time.monotonic() + stage.seconds
    killed = 0
    while time.monotonic() < until_s:
        killed += stage.chaos.processes.kill(*stage.chaos.names_of(stage.part)).count(-signal.SIGKILL)
        stage.chaos.wait(stage.chance.uniform(0.2, 1.0) * _BETWEEN_KILLS_S)
    stage.evidence["killed"] = killed


def freeze(stage: Stage) -> None:
    victim = stage.victim()
    stage.chaos.processes.freeze(victim)
    try:
        stage.wait()
        stage.evidence["frozen"] = int(_is_stopped(stage.chaos.processes.pid(victim)))
    finally:
        stage.chaos.processes.thaw(victim)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def terminate_backends(stage: Stage) -> None:
    """End every session of the part, several times within the fault."""
    pattern = "tocsin consume%" if stage.part == "consumer" else f"tocsin {stage.part}%"
    ended = 0
    for _ in range(3):
        ended += len(stage.chaos.read(_TERMINATE, pattern))
        stage.chaos.wait(stage.chance.uniform(0.5, 1.5))
    stage.evidence["terminated"] = ended


def cut(stage: Stage, server: str) -> None:
    link, background = stage.link(server), stage.chaos.background
    background.call(link.cut())
    try:
        stage.wait()
    finally:
        background.call(link.heal())
    stage.evidence["broken"] = link.counts.cut + link.counts.rejected


def stall(stage: Stage, server: str) -> None:
    link, background = stage.link(server), stage.chaos.background
    background.call(link.stall())
    try:
        stage.wait()
    finally:
        background.call(link.heal())
    stage.evidence["held"] = link.counts.held


def delay(stage: Stage) -> None:
    background = stage.chaos.background
    links = [stage.link("postgres"), stage.link("nats")]
    for link in links:
        background.call(link.delay(_DELAY_S))
    try:
        stage.wait()
    finally:
        for link in links:
            background.call(link.heal())
    stage.evidence["delayed"] = min(link.counts.delayed for link in links)


_TERMINATE = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like %s"
