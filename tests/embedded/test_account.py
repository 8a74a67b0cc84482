"""The account of Postgres: started by root, by root in closed directories, and by a user."""

import os
import pwd
import shutil
from pathlib import Path

import psycopg
import pytest

from tests.embedded.launchers import in_a_fork, users_of
from tocsin.core.errors import Refused
from tocsin.embedded import embedded_postgres, embedded_servers

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change to another account")


def _user_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def _user_namespace_of(pid: int | str) -> Path:
    return Path(f"/proc/{pid}/ns/user").readlink()


def _unprivileged() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _kept_id(data_dir: Path) -> int:
    return int((data_dir / "servers.uid").read_text())


@as_root
def test_root_runs_postgres_as_another_user_and_changes_only_its_own_directory(short_path: Path) -> None:
    data_dir = short_path / "data"
    data_dir.mkdir(mode=0o755)
    with embedded_postgres(data_dir, durable=False) as postgres:
        assert _user_of(postgres.pid) == _kept_id(data_dir)
        assert _user_namespace_of(postgres.pid) == _user_namespace_of("self")
        assert (data_dir / "postgres").stat().st_uid == _kept_id(data_dir)
        for untouched in (short_path, data_dir):
            assert (untouched.stat().st_uid, untouched.stat().st_mode & 0o777) == (0, 0o755)


@as_root
def test_root_runs_both_servers_under_an_id_that_no_other_program_has(short_path: Path) -> None:
    data_dir = short_path / "data"
    with embedded_servers(data_dir, durable=False) as servers:
        number = _kept_id(data_dir)
        with pytest.raises(KeyError):
            pwd.getpwuid(number)
        for pid in (servers.postgres.pid, servers.nats.pid):
            status = Path(f"/proc/{pid}/status").read_text()
            assert f"Uid:\t{number}\t{number}\t{number}\t{number}\n" in status
            assert f"Gid:\t{number}\t{number}\t{number}\t{number}\n" in status
            assert "CapEff:\t0000000000000000\n" in status
    with embedded_servers(data_dir, durable=False) as servers:
        assert _user_of(servers.nats.pid) == _user_of(servers.postgres.pid) == number


@as_root
def test_nats_has_no_capabilities_in_a_closed_directory(short_path: Path) -> None:
    data_dir = short_path / "data"
    short_path.chmod(0o700)
    with embedded_servers(data_dir, durable=False) as servers:
        for pid in (servers.postgres.pid, servers.nats.pid):
            assert _user_namespace_of(pid) != _user_namespace_of("self")
            assert "CapEff:\t0000000000000000\n" in Path(f"/proc/{pid}/status").read_text()


@as_root
def test_data_moves_between_an_open_and_a_closed_directory(short_path: Path) -> None:
    data_dir = short_path / "data"
    with embedded_postgres(data_dir, durable=False) as postgres, psycopg.connect(postgres.url) as connection:
        connection.execute("create table kept (id int)")
    for mode, outside_user in ((0o700, 0), (0o755, _kept_id(data_dir))):
        short_path.chmod(mode)
        with embedded_postgres(data_dir, durable=False) as postgres:
            assert (_user_namespace_of(postgres.pid) != _user_namespace_of("self")) == (mode == 0o700)
            assert (data_dir / "postgres" / "PG_VERSION").stat().st_uid == outside_user
            with psycopg.connect(postgres.url) as connection:
                assert connection.execute("select count(*) from kept").fetchone() == (0,)
        assert short_path.stat().st_mode & 0o777 == mode


@as_root
def test_root_is_rejected_if_no_other_user_can_run_postgres(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(Refused) as refusal, embedded_postgres(tmp_path):
        pass
    assert "the servers do not run as root, and the user id " in str(refusal.value)
    assert f"'{tmp_path}'" in str(refusal.value)


@as_root
def test_an_ordinary_user_runs_everything_as_itself(short_path: Path) -> None:
    data_dir = short_path / "data"
    short_path.chmod(0o777)

    def launch() -> None:
        os.setgroups([])
        os.setgid(_unprivileged().pw_gid)
        os.setuid(_unprivileged().pw_uid)
        for _ in range(2):
            with embedded_servers(data_dir, durable=False) as servers:
                users = {_user_of(pid) for pid in (servers.postgres.pid, servers.nats.pid)}
                assert users == {_unprivileged().pw_uid}
                with psycopg.connect(servers.postgres_url) as connection:
                    assert connection.execute("select 1").fetchone() == (1,)

    _, status = os.waitpid(in_a_fork(launch), 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert data_dir.stat().st_uid == _unprivileged().pw_uid
    assert data_dir.stat().st_mode & 0o777 == 0o700
    assert users_of(data_dir) == {}
