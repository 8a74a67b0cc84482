"""kill -9 of the launcher at any moment: nothing is left running, and the next start works."""

import os
import random
import signal
from pathlib import Path

import psycopg
import pytest

from tests.embedded.launchers import script_launcher, users_of
from tests.wait import eventually_sync
from tocsin.core.errors import Refused
from tocsin.embedded import embedded_postgres, embedded_servers, server


def _kill_at_a_random_moment(data_dir: Path, moments: random.Random, longest: float) -> None:
    with script_launcher(data_dir) as launcher:
        launcher.kill_after(moments.uniform(0.0, longest))


def _nothing_left(data_dir: Path) -> None:
    eventually_sync(lambda: users_of(data_dir) == {}, f"no process uses '{data_dir}'")


@pytest.mark.parametrize("seed", range(4))
def test_a_kill_during_the_first_start_leaves_nothing_behind(tmp_path: Path, seed: int) -> None:
    _kill_at_a_random_moment(tmp_path, random.Random(seed), longest=0.9)
    _nothing_left(tmp_path)
    with embedded_servers(tmp_path, durable=False) as servers, psycopg.connect(servers.postgres_url) as found:
        assert found.execute("select 1").fetchone() == (1,)
    assert not list(tmp_path.glob("postgres.draft-*"))


def test_a_new_launcher_may_start_at_once_after_each_of_many_kills(warm_path: Path) -> None:
    moments = random.Random(1)
    with embedded_servers(warm_path, durable=False) as servers:
        with psycopg.connect(servers.postgres_url) as connection:
            connection.execute("create table kept (id int)")
        addresses = (servers.postgres_url, servers.nats_url)
    for round_number in range(6):
        _kill_at_a_random_moment(warm_path, moments, longest=0.15)
        with embedded_servers(warm_path, durable=False) as servers:
            assert (servers.postgres_url, servers.nats_url) == addresses
            with psycopg.connect(servers.postgres_url) as connection:
                connection.execute("insert into kept values (%s)", [round_number])
                assert connection.execute("select count(*) from kept").fetchone() == (round_number + 1,)
    _nothing_left(warm_path)


def test_servers_die_with_a_launcher_that_was_running(warm_path: Path) -> None:
    with script_launcher(warm_path) as launcher:
        postgres_pid, nats_pid, _, _ = launcher.wait_until_ready()
        assert {postgres_pid, nats_pid} < users_of(warm_path).keys()
        launcher.kill()
    _nothing_left(warm_path)


def test_a_kill_inside_initdb_leaves_no_data_that_a_start_would_trust(tmp_path: Path) -> None:
    def half_made() -> bool:
        return any(tmp_path.glob("postgres*/PG_VERSION"))

    with script_launcher(tmp_path) as launcher:
        eventually_sync(half_made, "initdb has begun")
        launcher.kill()
    with embedded_servers(tmp_path, durable=False) as servers, psycopg.connect(servers.postgres_url) as found:
        assert found.execute("select 1").fetchone() == (1,)


def test_a_new_launcher_waits_for_a_postgres_that_is_still_dying(
    warm_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with script_launcher(warm_path) as launcher:
        postgres_pid, _, _, _ = launcher.wait_until_ready()
        os.kill(postgres_pid, signal.SIGSTOP)
        launcher.kill()
    try:
        with monkeypatch.context() as shortened:
            shortened.setattr(server, "START_TIMEOUT_S", 0.3)
            with pytest.raises(Refused) as refusal, embedded_postgres(warm_path, durable=False):
                pass
        assert f"is in use by process {postgres_pid}:" in str(refusal.value)
    finally:
        os.kill(postgres_pid, signal.SIGCONT)
    with embedded_servers(warm_path, durable=False) as servers:
        assert servers.postgres.pid != postgres_pid
