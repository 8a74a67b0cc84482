"""Faults of Postgres, of NATS and of the host: crashes, failovers, lost data, full disks, wrong clocks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
from nats.errors import Error as NatsError

from tests.faults.chaos.slow_disk import delayed_calls, slow_disk
from tests.faults.chaos.stage import Stage
from tests.rules.lanes.lane_setup import jetstream

_WITHIN_S = 60.0
_LOST_S = 3.0
_STEP_S = 300
_SYNC_S = 0.2
_FILLER = "filler"
_TOO_MANY = 230
_BLOCK = bytes(1 << 20)


def crash_postgres(stage: Stage) -> None:
    server = stage.chaos.postgres
    before = server.pid
    server.kill()
    stage.wait()
    server.start()
    stage.evidence["crashed"] = int(server.pid != before)


def crash_nats(stage: Stage) -> None:
    server = stage.chaos.nats
    before = server.pid
    server.kill()
    stage.wait()
    server.start()
    stage.evidence["crashed"] = int(server.pid != before)


def crash_nats_leader(stage: Stage) -> None:
    """Kill the server of a cluster that leads the data stream. The others elect a leader meanwhile."""
    chaos = stage.chaos
    chaos.until(lambda: bool(chaos.data_leader()), "the data stream has a leader", _WITHIN_S)
    before = chaos.data_leader()
    (node,) = (node for node in chaos.nodes if node.server_name == before)
    node.kill()
    stage.wait()
    chaos.until(lambda: chaos.data_leader() not in ("", before), "another server leads", _WITHIN_S)
    stage.evidence["elected"] = 1
    node.start()


def lose_nats_quorum(stage: Stage) -> None:
    """Kill two of three NATS servers, the leader of the data stream among them, and start them again."""
    chaos = stage.chaos
    chaos.until(lambda: bool(chaos.data_leader()), "the data stream has a leader", _WITHIN_S)
    before = chaos.data_leader()
    down = sorted(chaos.nodes, key=lambda node: node.server_name != before)[:2]
    for node in down:
        node.kill()
    stage.wait()
    stage.evidence["without_quorum"] = int(not chaos.data_leader())
    for node in down:
        node.start()


def slow_down_disk(stage: Stage) -> None:
    """Delay each sync of the server of this cell."""
    chaos = stage.chaos
    server = chaos.postgres if stage.part == "postgres" else chaos.nats
    output = chaos.folder / "strace.txt"
    with slow_disk(server.pid, _SYNC_S, output):
        stage.wait()
    stage.evidence["delayed"] = delayed_calls(output)


def fail_over(stage: Stage) -> None:
    """Kill the primary and promote its standby, which had confirmed every commit."""
    _fail_over(stage)
    stage.evidence["promoted"] = int(stage.chaos.is_failed_over)


def fail_over_after_cut(stage: Stage) -> None:
    """Cut the synchronous standby off, end the sessions whose commits wait for it, and promote it.

    The takeover of a killed clock ends such a session too. Its commit is then visible on the primary,
    and on it alone: what has left the primary by then must not be part of it.
    """
    chaos = stage.chaos
    chaos.background.call(chaos.links["standby", "postgres"].stall())
    head = _head(stage)
    chaos.until(
        lambda: _has_local_commits(stage, head), "a commit is visible on the primary alone", _WITHIN_S
    )
    stage.wait()
    local_head = _head(stage)
    _fail_over(stage)
    stage.evidence["local_commits"] = max(0, local_head - _head(stage))


def _has_local_commits(stage: Stage, head: int) -> bool:
    stage.chaos.read("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
    return _head(stage) > head


def fail_over_with_loss(stage: Stage) -> None:
    """Kill a primary whose standby is seconds behind. An operator accepts the loss, as documented."""
    chaos = stage.chaos
    chaos.background.call(chaos.links["standby", "postgres"].stall())
    chaos.wait(_LOST_S)
    head_before = _head(stage)
    _fail_over(stage)
    stage.evidence["commits_lost"] = max(0, head_before - _head(stage))
    _adopt(stage)


def _fail_over(stage: Stage) -> None:
    chaos = stage.chaos
    assert chaos.standby is not None
    chaos.postgres.kill()
    stage.observe()
    chaos.standby.promote()
    chaos.is_failed_over = True


def _head(stage: Stage) -> int:
    ((head,),) = stage.chaos.read("select coalesce(max(last_seq), 0) from tocsin.log_commit")
    return int(head)


def _adopt(stage: Stage) -> None:
    """Wait until the publisher has reported the difference, then accept the loss."""
    stage.chaos.until(lambda: _publisher_stopped(stage), "the publisher reports the difference", _WITHIN_S)
    stage.observe()
    answer = stage.chaos.run_command("cdc", "adopt", "--yes", "--json")
    assert answer.returncode == 0, answer.stderr
    loss = json.loads(answer.stdout)
    stage.evidence["adopted"] = loss["until"] - loss["from"] + 1
    stage.operator.append("tocsin cdc adopt")


def _publisher_stopped(stage: Stage) -> bool:
    return bool(stage.chaos.read("select from tocsin.cdc_report where problem is not null"))


def roll_back_nats(stage: Stage) -> None:
    """Replace the store of NATS by a copy of some seconds ago, as a restored snapshot of its disk does."""
    chaos = stage.chaos
    store, copy = chaos.folder / "nats" / "nats", chaos.folder / "nats-copy"
    chaos.nats.stop()
    shutil.copytree(store, copy)
    chaos.nats.start()
    chaos.wait(stage.seconds)
    before = chaos.last_sequence(chaos.settings.data_stream)
    chaos.nats.kill()
    shutil.rmtree(store)
    copy.rename(store)
    chaos.nats.start()
    stage.evidence["rolled_back"] = max(0, before - chaos.last_sequence(chaos.settings.data_stream))


def exhaust_connections(stage: Stage) -> None:
    """Use up `max_connections`, then end the sessions of the services, which find few places to return to."""
    with ExitStack() as taken:
        stranger = taken.enter_context(_session(stage))
        _take_connections(stage, taken)
        stranger.execute(_END_SESSIONS)
        stage.evidence["rejected"] = _take_connections(stage, taken)
        stage.wait()


@contextlib.contextmanager
def _session(stage: Stage) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(stage.chaos.database.url, autocommit=True) as connection:
        yield connection


def _take_connections(stage: Stage, taken: ExitStack) -> int:
    """Open sessions until Postgres rejects one; 1 if it did."""
    for _ in range(_TOO_MANY):
        try:
            taken.enter_context(_session(stage))
        except psycopg.OperationalError:
            return 1
    return 0


def hold_timer(stage: Stage) -> None:
    """A session of a stranger locks the timer of one schedule and idles in its transaction."""
    with psycopg.connect(stage.chaos.database.url) as stranger:
        row = stranger.execute(_HOLD_TIMER).fetchone()
        assert row is not None
        stage.wait()
        ((waited_s,),) = stage.chaos.read(_WAITED, row[0])
        stage.evidence["seconds_without_fire"] = int(waited_s)
        stranger.rollback()


def hold_log_head(stage: Stage) -> None:
    """A session of a stranger locks the row of the leader and idles in its transaction."""
    with psycopg.connect(stage.chaos.database.url) as stranger:
        stage.evidence["locked"] = len(stranger.execute(_HOLD_HEAD).fetchall())
        stage.wait()
        stranger.rollback()


def fill_postgres(stage: Stage) -> None:
    folder = stage.chaos.folder / "postgres"
    with psycopg.connect(stage.chaos.service_database, autocommit=True) as connection:
        connection.execute(_CREATE_FILLER)
        with _filled(folder):
            stage.evidence["writes_rejected"] = int(_is_rejected(connection))
            stage.wait()


def _is_rejected(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    try:
        connection.execute(_FILL)
    except psycopg.errors.DiskFull:
        return True
    return False


def fill_nats(stage: Stage) -> None:
    """NATS may switch JetStream off when its disk is full. An operator then has to restart it."""
    chaos = stage.chaos
    chaos.background.call(_make_scratch(stage))
    with _filled(chaos.folder / "nats"):
        stage.evidence["writes_rejected"] = int(not chaos.background.call(_writes(stage, count=200)))
        stage.wait()
    if not chaos.background.call(_writes(stage, count=1)):
        chaos.nats.stop()
        chaos.nats.start()
        stage.operator.append("restart of nats-server")


async def _make_scratch(stage: Stage) -> None:
    async with jetstream(stage.chaos.direct) as js:
        await js.add_stream(name=_FILLER, subjects=[_FILLER])


async def _writes(stage: Stage, count: int) -> bool:
    """Whether JetStream stores messages of 100 kB."""
    try:
        async with asyncio.timeout(20), jetstream(stage.chaos.direct) as js:
            for _ in range(count):
                await js.publish(_FILLER, bytes(100_000), timeout=5)
    except (NatsError, OSError, TimeoutError):
        return False
    return True


@contextlib.contextmanager
def _filled(folder: Path) -> Iterator[None]:
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            for block in (_BLOCK, bytes(4096)):
                with contextlib.suppress(OSError):
                    while file.write(block) == len(block):
                        pass
        yield
    finally:
        filler.unlink()


def step_clock(stage: Stage) -> None:
    """Set the wall clock of the part ahead, back, and right again."""
    chaos = stage.chaos
    seen = 0
    for offset in (_STEP_S, -_STEP_S):
        (chaos.folder / "offset").write_text(f"{offset:+d}s\n")
        chaos.wait(stage.seconds / 2)
        seen += abs(_offset_s(stage)) > _STEP_S / 2
    stage.observe()
    (chaos.folder / "offset").write_text("+0s\n")
    stage.evidence["stepped"] = int(seen == 2)


def _offset_s(stage: Stage) -> float:
    """The offset that a process with the library has."""
    answer = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env={**os.environ, **stage.chaos.faketime_environment()},
        capture_output=True,
        check=True,
        text=True,
    )
    ((now,),) = stage.chaos.read("select extract(epoch from tocsin.instant())")
    return float(answer.stdout) - float(now)


_END_SESSIONS = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'tocsin%'"
_HOLD_TIMER = """
    select t.ref from tocsin.timer t join tocsin.schedule s on s.id::text = t.ref
    where t.kind = 'schedule-tick' and s.name = 'pulse-all' for update of t
"""
_WAITED = "select extract(epoch from tocsin.instant() - nominal_at) from tocsin.timer where ref = %s"
_HOLD_HEAD = "select epoch from tocsin.log_head for update"
_CREATE_FILLER = "create table filler (bytes text); alter table filler alter bytes set storage plain"
_FILL = "insert into filler select repeat('x', 7000) from generate_series(1, 2000)"
