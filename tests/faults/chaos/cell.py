"""One cell of the matrix: a fault against a part, its costs, the recovery, and the signals."""

from __future__ import annotations

import random
import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import psycopg
from nats.errors import Error as NatsError

from tests.faults.chaos.account import Costs, account
from tests.faults.chaos.installation import Installation, installation
from tests.faults.chaos.matrix import Fault
from tests.faults.chaos.stage import Stage
from tests.faults.chaos.vitals import Recovery, wait_until_normal

START_WITHIN_S = 240.0
RECOVERY_WITHIN_S = 90.0
_SETTLED_WITHIN_S = 60.0
# The load of a run whose own producer paused this long is not the load that was meant.
_LONGEST_PAUSE_S = 4.0
_ROUNDS_BEFORE = 3


@dataclass
class CellResult:
    fault: str
    part: str
    seed: int
    skipped: str = ""
    happened: dict[str, int] = field(default_factory=dict)
    costs: Costs = field(default_factory=Costs)
    recovery: Recovery = field(default_factory=lambda: Recovery(0.0, {}))
    doctor: list[str] = field(default_factory=list)
    doctor_named: bool | None = None
    """None if no signal is expected."""
    metrics: list[str] = field(default_factory=list)
    metrics_named: bool | None = None
    operator: list[str] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    """Processes that ended by themselves and that the supervisor started again."""
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def not_measured(self) -> str:
        """Why there is no result: the cell was skipped, it failed, or its fault did not happen."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        if not self.costs.handled or not self.happened or not all(self.happened.values()):
            return f"not measured: {self.problems[0].splitlines()[0] if self.problems else 'no fault'}"
        return ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def run_cell(fault: Fault, part: str, seed: int, seconds: float) -> CellResult:
    """Run one cell on an installation of its own."""
    result = CellResult(fault.name, part, seed, skipped=fault.reason_to_skip())
    if result.skipped:
        return result
    began_s = time.monotonic()
    try:
        with installation(fault.layout(part)) as chaos:
            wait_until_loaded(chaos)
            inflict(chaos, fault, part, seed, seconds, result)
            finish(chaos, result, fault)
    except Exception as error:
        result.problems.append(f"{type(error).__name__}: {error}")
        result.problems += getattr(error, "__notes__", [])
    result.seconds = round(time.monotonic() - began_s, 1)
    return result


def wait_until_loaded(chaos: Installation) -> None:
    recovery = wait_until_normal(chaos, START_WITHIN_S)
    assert recovery.seconds >= 0, f"the installation does not start: {recovery.aspects}"
    chaos.until(lambda: chaos.load.acknowledged >= _ROUNDS_BEFORE, "the producer sends", START_WITHIN_S)


def inflict(
    chaos: Installation, fault: Fault, part: str, seed: int, seconds: float, result: CellResult
) -> None:
    """Inflict the fault and wait until the installation is normal again."""
    stage = Stage(chaos, part, seconds, random.Random(f"{seed}/{fault.name}/{part}"))
    fault.inflict(stage)
    result.recovery = wait_until_normal(chaos, RECOVERY_WITHIN_S)
    result.happened = stage.evidence
    result.operator = stage.operator
    result.doctor, result.metrics = stage.doctor, stage.metrics
    result.doctor_named = _is_named(fault.doctor(part), stage.doctor, stage)
    result.metrics_named = _is_named(fault.metrics(part), stage.metrics, stage)
    if result.recovery.seconds < 0:
        result.problems.append(f"no recovery within {RECOVERY_WITHIN_S:g} s: {result.recovery.aspects}")


def _is_named(pattern: str, signals: list[str], stage: Stage) -> bool | None:
    if not pattern or not stage.is_observed:
        return None
    return any(re.search(pattern, signal, re.IGNORECASE) for signal in signals)


def finish(chaos: Installation, result: CellResult, fault: Fault | None = None) -> None:
    """End the load, wait until everything is handled, and account for it."""
    rounds = chaos.end_load()
    with suppress(AssertionError):  # what is not handled by then is lost, and the account shows it
        chaos.until(lambda: _is_settled(chaos, rounds), "everything is handled", _SETTLED_WITHIN_S)
    result.costs = account(chaos, rounds)
    if fault is not None and fault.stops_data:
        result.happened["stale"] = result.costs.wrong.pop("stale")
    if not result.happened or not all(result.happened.values()):
        result.problems.append(f"the fault did not happen: {result.happened}")
    result.restarted = chaos.restarted
    pause_s = chaos.load.longest_pause_s
    if pause_s > _LONGEST_PAUSE_S:
        result.problems.append(
            f"the machine is too busy: the producer of this run paused for {pause_s:.1f} s"
        )
    allowed = fault.allowed if fault is not None else frozenset()
    for what in ("lost", "doubled", "out_of_order", "wrong"):
        for name, count in asdict(result.costs)[what].items():
            if count and f"{what} {name}" not in allowed:
                result.problems.append(f"{what}: {count} {name}")


def _is_settled(chaos: Installation, rounds: int) -> bool:
    with suppress(psycopg.Error, NatsError, OSError, TimeoutError):
        ((head, read, runs, one_shots, stored),) = chaos.read(_SETTLED)
        ((consumed,),) = chaos.read_service("select coalesce(max(seq), 0) from effect")
        published = chaos.last_sequence()
        return bool(
            head == read == consumed == published and not runs and not one_shots and stored >= rounds * 50
        )
    return False


_SETTLED = """
    select (select max(last_seq) from tocsin.log_commit),
           (select last_seq from tocsin.lane_partition where lane = 'record'),
           (select count(*) from tocsin.action where state in ('gathering', 'queued', 'running')),
           (select count(*) from tocsin.timer t join tocsin.schedule s on s.id::text = t.ref
            where s.name like 'once-%'),
           (select count(*) from tocsin.datapoint where owner like 'plant-%')
"""
