"""Datapoints replayed per second from a recording, beside bare evaluation of the same condition.

The recording is generated: 1,000 series of 1,000 owners, one datapoint a minute each; one series fires now and then.
Measured is everything: reading and decoding the file, watchdogs, the engine, the comparison. The bare loop makes a new
Activation per datapoint and evaluates, with the datapoints in memory. Per core: CPU time of one process; all cores:
wall time. `--datapoints N` (default 500,000); 43,200,000 is 30 days.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

from bench.engine import bare_loop, per_second
from rules.backtest.facts import Apply, OwnerBegins, Story, Version
from rules.backtest.recording import RecordingSource
from rules.backtest.recording_lines import datapoint_line, encoded, owner_line, story_lines
from rules.backtest.running import backtest
from rules.engine import Arrival
from schemas.documents import DatapointTypeDocument, EventRuleDocument

_T0 = datetime(2026, 1, 1, tzinfo=UTC)
_KEY = "dsp.temperature"
_FIRE = "value > 65.0"
_SERIES = 1_000
_SAMPLE = 100_000
_ROUNDS = 3
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
        _generate(path, per_series)
        alone = _measured(path, 1)
        together = _measured(path, cores)
        size = path.stat().st_size
    total = per_series * _SERIES
    return {
        "name": "backtest",
        "datapoints": total,
        "recording in bytes": size,
        "alarms": alone["alarms"],
        "bare loop per core": limit,
        "per core": total / alone["cpu_s"],
        "cores": cores,
        "all cores": total / together["wall_s"],
        "all cores, of one": alone["wall_s"] / together["wall_s"],
        "peak memory in MB, one process": alone["peak_mb"],
        "ours": total / alone["cpu_s"],
        "limit": limit,
        "ratio": total / alone["cpu_s"] / limit,
        "goal": "at least 0.4 of the bare loop per core",
    }


def _measured(path: Path, jobs: int) -> dict[str, float]:
    """In a process of its own, so that its peak is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_replay, path, jobs).result()


def _replay(path: Path, jobs: int) -> dict[str, float]:
    async def replay() -> int:
        source = RecordingSource(path)
        found = await backtest(source, await source.story(), jobs=jobs)
        return len(found.now)

    cpu, wall = time.process_time(), time.monotonic()
    alarms = asyncio.run(replay())
    return {
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.monotonic() - wall,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "alarms": alarms,
    }


def _generate(path: Path, per_series: int) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for line in story_lines(_story(per_series)):
            file.write(encoded(line))
        for series in range(_SERIES):
            file.write(encoded(owner_line(OwnerBegins(f"plant-{series}", 0, (), ()))))
            lines = (encoded(datapoint_line(_datapoint(series, minute))) for minute in range(per_series))
            file.write(b"".join(lines))
        counts = {"owners": _SERIES, "datapoints": _SERIES * per_series, "events": 0, "verdicts": 0}
        file.write(encoded({"end": counts}))


def _story(minutes: int) -> Story:
    rule = EventRuleDocument.model_validate({"name": "hot", "datapoint": _KEY, "fire": _FIRE, "for": "10m"})
    type_ = DatapointTypeDocument.model_validate({"name": "temperature", "key": _KEY, "interval": "1m"})
    documents: list[tuple[str, EventRuleDocument | DatapointTypeDocument]] = [
        ("event_rule", rule),
        ("datapoint_type", type_),
    ]
    return Story(
        start=_T0,
        since=_T0,
        until=_T0 + timedelta(minutes=minutes),
        is_whole=True,
        versions=[
            Version(kind, one.name, 1, one.model_dump(mode="json", by_alias=True), 1, None)
            for kind, one in documents
        ],
        applies=[Apply(1, _T0, _T0)],
        switches=[],
        horizons=[],
    )


def _datapoint(series: int, minute: int) -> Arrival:
    is_hot = series == 7 and minute % 50 < 20
    at = _T0 + timedelta(minutes=minute, seconds=series % 60)
    value = 70.0 if is_hot else 60.0 + (minute + series) * 7 % 13 * 0.3
    return Arrival(at, minute * _SERIES + series, f"plant-{series}", _KEY, value, at, _LABELS)
