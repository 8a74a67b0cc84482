"""Datapoints replayed per second from a recording, compared with bare evaluation of the condition.

The recording is generated: 1,000 series of 1,000 owners, one datapoint a minute each; one series
fires now and then. Everything is measured: reading and decoding the file, watchdogs, the engine,
the comparison. The bare loop makes a new Activation per datapoint and evaluates, with the
datapoints in memory. Per core: CPU time of one process, of at most two million datapoints; all
cores: wall time of all of them. `--datapoints N` (default 500,000); 43,200,000 is 30 days.
"""

from __future__ import annotations

import asyncio
import os
import resource
import tempfile
import time
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

from bench.engine import bare_loop, per_second
from rules.engine import Arrival
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording.model import (
    Arrivals,
    DocumentVersion,
    OwnerHeader,
    RecordedApply,
    RecordingHeader,
    RecordingItem,
)
from rules.replay.backtest.recording.recording import FileRecording, write_recording
from schemas.documents import DatapointTypeDocument, EventRuleDocument

_T0 = datetime(2026, 1, 1, tzinfo=UTC)
_KEY = "dsp.temperature"
_FIRE = "value > 65.0"
_SERIES = 1_000
_SAMPLE = 100_000
_ROUNDS = 3
_ROWS_AT_ONCE = 5_000
_MAX_FOR_ONE = 2_000_000
_WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
_LABELS: dict[str, str] = {}


def run(arguments: list[str]) -> dict[str, object]:
    count = int(arguments[arguments.index("--datapoints") + 1]) if "--datapoints" in arguments else 500_000
    per_series = max(count // _SERIES, 1)
    bare = bare_loop(_FIRE)
    sample = [_datapoint(series, minute) for minute in range(_SAMPLE // _SERIES) for series in range(_SERIES)]
    limit = max(per_second(bare, sample) for _ in range(_ROUNDS))
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.ndjson.gz"
        for_one = min(per_series, _MAX_FOR_ONE // _SERIES)
        written_s = _write(path, for_one)
        alone = _measured(path, 1)
        if for_one < per_series:
            written_s = _write(path, per_series)
        together = _measured(path, cores)
        size = path.stat().st_size
    total = per_series * _SERIES
    per_core = for_one * _SERIES / alone["cpu_s"]
    return {
        "name": "backtest",
        "datapoints": total,
        "recording in bytes": size,
        "seconds to write it": written_s,
        "alarms": together["alarms"],
        "bare loop per core": limit,
        "per core": per_core,
        "cores": cores,
        "seconds on all cores": together["wall_s"],
        "CPU seconds on all cores": together["cpu_s"],
        "all cores": total / together["wall_s"],
        "all cores, of one": (total / together["wall_s"]) / (for_one * _SERIES / alone["wall_s"]),
        "peak memory in MB, largest process": max(alone["peak_mb"], together["peak_mb"]),
        "load": os.getloadavg()[0],
        "ours": per_core,
        "limit": limit,
        "ratio": per_core / limit,
        "goal": "at least 0.4 of the bare loop per core",
    }


def _write(path: Path, per_series: int) -> float:
    begun = time.monotonic()
    asyncio.run(write_recording(_Generated(per_series), path))
    return time.monotonic() - begun


def _measured(path: Path, jobs: int) -> dict[str, float]:
    """Measured in a process of its own, so that the peak memory is of the replay alone."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_replay, path, jobs).result()


def _replay(path: Path, jobs: int) -> dict[str, float]:
    async def replay() -> int:
        source = FileRecording(path)
        result = await backtest(source, await source.header(), jobs=jobs)
        return len(result.replayed_transitions)

    cpu, wall = _cpu_s(), time.monotonic()
    alarms = asyncio.run(replay())
    return {
        "cpu_s": _cpu_s() - cpu,
        "wall_s": time.monotonic() - wall,
        "peak_mb": max(resource.getrusage(who).ru_maxrss for who in _WHO) / 1024,
        "alarms": alarms,
    }


def _cpu_s() -> float:
    """CPU seconds of this process, and of its children that have ended."""
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, _WHO))


@dataclass(frozen=True)
class _Generated:
    per_series: int

    async def header(self) -> RecordingHeader:
        return _header(self.per_series)

    async def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        for series in range(_SERIES):
            yield series / _SERIES, OwnerHeader(f"plant-{series}", 0, (), ())
            for begin in range(0, self.per_series, _ROWS_AT_ONCE):
                minutes = range(begin, min(begin + _ROWS_AT_ONCE, self.per_series))
                yield series / _SERIES, Arrivals([_datapoint(series, minute) for minute in minutes])


def _header(minutes: int) -> RecordingHeader:
    rule = EventRuleDocument.model_validate({"name": "hot", "datapoint": _KEY, "fire": _FIRE, "for": "10m"})
    type_ = DatapointTypeDocument.model_validate({"name": "temperature", "key": _KEY, "interval": "1m"})
    documents: list[tuple[str, EventRuleDocument | DatapointTypeDocument]] = [
        ("event_rule", rule),
        ("datapoint_type", type_),
    ]
    return RecordingHeader(
        start=_T0,
        since=_T0,
        until=_T0 + timedelta(minutes=minutes),
        is_whole=True,
        versions=[
            DocumentVersion(kind, document.name, 1, document.model_dump(mode="json", by_alias=True), 1, None)
            for kind, document in documents
        ],
        applies=[RecordedApply(1, _T0, _T0)],
        cutovers=[],
        horizons=[],
        gaps={},
    )


def _datapoint(series: int, minute: int) -> Arrival:
    mixed = (minute * 2_654_435_761 ^ series * 40_503) & 0xFFFFFFFF
    chance = (mixed ^ mixed >> 15) * 2_246_822_519 & 0xFFFFFFFF
    at = _T0 + timedelta(0, minute * 60 + series % 60, chance % 900_000)
    is_hot = series == 7 and minute % 50 < 20
    value = 70.0 if is_hot else 60.0 + chance % 389 / 100
    return Arrival(at, minute * _SERIES + series, f"plant-{series}", _KEY, value, at, _LABELS)
