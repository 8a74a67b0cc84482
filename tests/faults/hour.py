"""`python -m tests.faults.hour [--minutes N] [--seed N]`: a recorded hour of the real system replays identically.

Clocks, publishers and workers are processes. Producers jitter, stop, resume and send invalid messages,
rules are applied, operators acknowledge and snooze, processes are killed and frozen, and NATS and
Postgres are killed. Then `tocsin backtest --historical` must replay the database and an export without
a mismatch, and `tocsin cdc verify` must find no difference in the stream. The summary is JSON; the
exit code is 1 if anything is missing or differs. `--folder` keeps the data, the logs and the recording.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import psycopg

from rules.alarms.operator import acknowledge, snooze
from rules.alarms.queries import list_alarms
from rules.apply import apply, preview
from rules.documents.load import LoadedDocuments, load_text
from rules.lanes.data_stream import ensure_data_stream
from tests.faults.busy_load import BusyLoad
from tests.faults.busy_rules import OWNERS, RULES, busy_rules
from tests.faults.plan import settings_of
from tests.faults.processes import TOCSIN, Processes, environment
from tests.rules.lanes.lane_setup import jetstream
from tests.sql import all_rows, one_row
from tests.wait import eventually
from timers.working_set import database_now
from tocsin.core.audit import Actor
from tocsin.core.db import connect
from tocsin.core.errors import TocsinError
from tocsin.core.logs import configure_logs
from tocsin.core.settings import Settings
from tocsin.embedded import Servers, embedded_servers

ROLES = ("clock a", "clock b", "cdc a", "cdc b", "worker a", "worker b", "worker c")
FAULTS = (
    *(f"kill {name}" for name in ROLES),
    "kill workers",
    "kill clocks",
    "freeze clock a",
    "freeze clock b",
    "freeze worker a",
    "freeze cdc a",
    "nats",
    "nats",
    "postgres",
    "postgres",
)
# Longer than any deadline that an arrival can begin: tolerance, then no_data_for or a cooldown.
SETTLE = timedelta(seconds=30)
IDENTICAL = re.compile(
    r"the replay equals the recording: ([\d,]+) alarm transitions"
    r", ([\d,]+) staleness changes, ([\d,]+) health changes"
)


@dataclass
class HourSummary:
    seed: int
    minutes: float
    pace_s: float
    edits_s: float
    datapoints: int = 0
    rejected: int = 0
    events: int = 0
    transitions: int = 0
    staleness: int = 0
    health: int = 0
    restarted: int = 0
    fired_rules: list[str] = field(default_factory=list)
    applies: int = 0
    operations: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class Hour:
    def __init__(self, servers: Servers, settings: Settings, folder: Path, summary: HourSummary) -> None:
        self._servers = servers
        self._settings = settings
        self._folder = folder
        self.summary = summary
        self._processes = Processes(settings, ROLES, folder)
        self._load = BusyLoad(settings, OWNERS, summary.seed, summary.pace_s)
        self._operations: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()

    async def run(self) -> None:
        try:
            begun = await self._begin()
            async with asyncio.TaskGroup() as group:
                for task in (
                    self._load.run,
                    self._edit_rules,
                    self._operate,
                    self._break,
                    self._supervise,
                    self._end,
                ):
                    group.create_task(task())
            until = await self._settle()
            await self._compare(begun, until)
        finally:
            self._processes.close()
            self.summary.operations = dict(self._operations)
            self.summary.faults = dict(self._faults)

    async def _begin(self) -> datetime:
        async with jetstream(self._settings) as js:
            await ensure_data_stream(js, self._settings, 1)
        connection = await connect(self._settings, "hour")
        begun = await database_now(connection)
        await connection.close()
        return begun

    async def _end(self) -> None:
        """Print the progress every minute, and end the load in time."""
        until_s = time.monotonic() + self.summary.minutes * 60
        while (left_s := until_s - time.monotonic()) > 0:
            await self._load.rest(min(left_s, 60))
            _print(f"{left_s / 60:.0f} minutes left, {self._load.sent:,} sent, faults {dict(self._faults)}")
        self._load.ended.set()

    async def _supervise(self) -> None:
        """Restart services that ended. A service ends if it finds no server when it starts."""
        while not self._load.ended.is_set():
            await self._load.rest(2)
            self._restart_ended()

    def _restart_ended(self) -> None:
        ended = self._processes.ended()
        self._processes.kill(*ended)
        self.summary.restarted += len(ended)

    async def _edit_rules(self) -> None:
        chance = random.Random(f"{self.summary.seed}/rules")
        text = busy_rules(chance)
        while not self._load.ended.is_set():
            loaded = load_text(text)
            with suppress(TocsinError, psycopg.Error):
                await self._apply(loaded)
                self.summary.applies += 1
                text = busy_rules(chance)
                await self._load.rest(chance.uniform(0.5, 1.5) * self.summary.edits_s)
            await self._load.rest(1)

    async def _apply(self, loaded: LoadedDocuments) -> None:
        connection = await connect(self._settings, "editor")
        try:
            now = await database_now(connection)
            removed = (await preview(connection, loaded, now, prune=True)).plan.removed
            await apply(connection, loaded, Actor("editor", "test", now), removing=removed)
        finally:
            await connection.close()

    async def _operate(self) -> None:
        """Acknowledge, snooze and unsnooze open alarms."""
        chance = random.Random(f"{self.summary.seed}/operators")
        while not self._load.ended.is_set():
            await self._load.rest(chance.uniform(1, 6))
            with suppress(TocsinError, psycopg.Error):
                await self._operate_once(chance)

    async def _operate_once(self, chance: random.Random) -> None:
        connection = await connect(self._settings, "person")
        try:
            alarms = await list_alarms(connection, states=("open",), limit=1000)
            if not alarms:
                return
            alarm = chance.choice(alarms)
            now = await database_now(connection)
            actor = Actor("person", "test", now)
            operation = chance.choice(("acknowledge", "snooze", "unsnooze"))
            if operation == "acknowledge":
                await acknowledge(connection, alarm, actor)
            else:
                until = now + timedelta(seconds=chance.uniform(1, 20)) if operation == "snooze" else None
                await snooze(connection, alarm, actor, until)
            self._operations[operation] += 1
        finally:
            await connection.close()

    async def _break(self) -> None:
        chance = random.Random(f"{self.summary.seed}/faults")
        every_s = min(55.0, self.summary.minutes * 60 / 12)
        bag: list[str] = []
        while True:
            await self._load.rest(chance.uniform(0.6, 1.4) * every_s)
            if self._load.ended.is_set():
                return
            if not bag:
                bag = chance.sample(FAULTS, len(FAULTS))
            fault = bag.pop()
            self._faults[fault] += 1
            await self._inflict(fault, chance.uniform(0.0, 5.0))

    async def _inflict(self, fault: str, for_s: float) -> None:
        kind, _, target = fault.partition(" ")
        if kind == "kill":
            alike = [name for name in ROLES if name.startswith(target.rstrip("s") + " ")]
            self._processes.kill(*(alike if target.endswith("s") else [target]))
        elif kind == "freeze":
            self._processes.freeze(target)
            await self._load.rest(for_s + 1)
            self._processes.thaw(target)
        else:
            server = self._servers.nats if kind == "nats" else self._servers.postgres
            server.kill()
            await self._load.rest(for_s)
            server.start()

    async def _settle(self) -> datetime:
        """Wait until everything is decided up to an instant after every deadline; that instant."""
        connection = await connect(self._settings, "hour")
        until = await database_now(connection) + SETTLE

        async def is_settled() -> bool:
            self._restart_ended()
            row = await one_row(connection, _SETTLED, (until, until, until))
            return bool(row["settled"])

        try:
            await eventually(is_settled, "everything is decided", within=300)
        finally:
            await connection.close()
        return until

    async def _compare(self, begun: datetime, until: datetime) -> None:
        await self._count(until)
        recording = self._folder / "recording.ndjson.gz"
        window = ("--since", begun.isoformat(), "--until", until.isoformat())
        await self._run_command("export", *window, "-o", str(recording))
        counts = (self.summary.transitions, self.summary.staleness, self.summary.health)
        expected = [f"{count:,}" for count in counts]
        for where in (window, ("--recording", str(recording))):
            output = await self._run_command("backtest", "--historical", *where, "--jobs", "1")
            match = IDENTICAL.search(output)
            if match is None or list(match.groups()) != expected:
                self.summary.problems.append(f"expected {expected}: {output}")
        output = await self._run_command("cdc", "verify")
        if "none differs" not in output:
            self.summary.problems.append(output)

    async def _run_command(self, *words: str) -> str:
        """Run a command of `tocsin`; its output."""
        process = await asyncio.create_subprocess_exec(
            *TOCSIN, *words, env=environment(self._settings), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        output = (await process.communicate())[0].decode()
        _print(output)
        if process.returncode:
            self.summary.problems.append(f"`tocsin {' '.join(words)}` exited with {process.returncode}")
        return output

    async def _count(self, until: datetime) -> None:
        connection = await connect(self._settings, "hour")
        summary = self.summary
        try:
            row = await one_row(connection, _COUNTS, (until, until, until, until))
            rules = await all_rows(connection, _RULES)
        finally:
            await connection.close()
        async with jetstream(self._settings) as js:
            info = await js.stream_info(self._settings.dead_stream, subjects_filter=">")
        dead = dict(info.state.subjects or {})
        summary.rejected = dead.pop(f"{self._settings.subjects}.dead.datapoint", 0)
        if dead:
            summary.problems.append(f"dead letters other than datapoints: {dead}")
        summary.datapoints, summary.events = row["datapoints"], row["events"]
        summary.transitions, summary.staleness = row["transitions"], row["staleness"]
        summary.health = row["health"]
        summary.fired_rules = [rule["rule"] for rule in rules]
        if row["datapoints"] != self._load.sent:
            summary.problems.append(f"{self._load.sent} were sent, {row['datapoints']} are stored")
        if summary.rejected < self._load.invalid:
            summary.problems.append(
                f"{self._load.invalid} invalid messages were sent, {summary.rejected} are dead letters"
            )
        if not summary.applies:
            summary.problems.append("no rules were applied")
        if row["external"] != self._load.emitted:
            summary.problems.append(f"{self._load.emitted} events were sent, {row['external']} are there")
        if summary.minutes >= 30 and not set(summary.fired_rules) >= RULES:
            summary.problems.append(f"never fired: {sorted(RULES - set(summary.fired_rules))}")


_SETTLED = """
    select (select bool_and(watermark >= %s) from tocsin.lane_partition)
       and not exists (select from tocsin.timer where kind in ('for-sustain', 'watchdog') and nominal_at <= %s)
       and not exists (select from tocsin.current_value c where c.freshness = 'stale' and c.stale_since <= %s
                       and c.handled_stale_since is distinct from c.stale_since) as settled
"""
_COUNTS = """
    select (select count(*) from tocsin.datapoint where owner like 'plant-%%') as datapoints,
           (select count(*) from tocsin.event where ts <= %s) as events,
           (select count(*) from tocsin.event where ts <= %s
            and type in ('alarm-opened', 'alarm-resolved')) as transitions,
           (select count(*) from tocsin.datapoint_calculated where ts <= %s
            and kind in ('stale', 'fresh')) as staleness,
           (select count(*) from tocsin.datapoint_calculated where ts <= %s and kind = 'health') as health,
           (select count(*) from tocsin.event where origin = 'external') as external
"""
_RULES = "select distinct rule from tocsin.event where type = 'alarm-opened' order by rule"


def _print(text: str) -> None:
    sys.stderr.write(f"{text.rstrip()}\n")
    sys.stderr.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.hour")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--pace", type=float, default=1.4, help="seconds between two messages of an owner")
    parser.add_argument("--edits", type=float, default=20.0, help="seconds between two applies")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    configure_logs(Settings(log_level="error"))
    summary = HourSummary(options.seed, options.minutes, options.pace, options.edits)
    _print(f"seed {options.seed}")
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="tocsin-", dir=memory if memory.is_dir() else None) as made:
        folder = options.folder or Path(made)
        with embedded_servers(folder / "servers") as servers:
            asyncio.run(Hour(servers, settings_of(servers, folder / "hour"), folder / "hour", summary).run())
    sys.stdout.write(json.dumps(asdict(summary), indent=2) + "\n")
    return 1 if summary.problems else 0


if __name__ == "__main__":
    sys.exit(main())
