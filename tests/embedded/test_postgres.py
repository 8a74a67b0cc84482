"""Postgres alone: creation, versions, leftovers of a crash, and errors."""

import os
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.embedded.launchers import users_of
from tocsin.core.errors import InvalidInput, Refused, Unreachable
from tocsin.embedded import binaries, embedded_postgres, server


def _fake_binaries(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    for name, script in scripts.items():
        (folder / name).write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit 0\n{script}\n')
        (folder / name).chmod(0o755)
    monkeypatch.setattr(binaries, "postgres_bin_dir", lambda _version: folder)


@pytest.mark.parametrize(("durable", "expected"), [(True, "on"), (False, "off")])
def test_durable_decides_what_reaches_the_disk(warm_path: Path, durable: bool, expected: str) -> None:
    with (
        embedded_postgres(warm_path, durable=durable) as postgres,
        psycopg.connect(postgres.url) as connection,
    ):
        rows = connection.execute(
            "select name, setting from pg_settings where name in "
            "('fsync', 'full_page_writes', 'synchronous_commit', 'listen_addresses', 'max_connections')"
        ).fetchall()
        assert dict(rows) == {
            "fsync": expected,
            "full_page_writes": expected,
            "synchronous_commit": "on",
            "listen_addresses": "",
            "max_connections": "200",
        }


def test_the_environment_of_the_caller_does_not_configure_the_server(
    warm_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steering = {
        "PGPORT": "1",
        "PGDATA": "/nowhere",
        "PGUSER": "x",
        "PGDATABASE": "y",
        "PGDATESTYLE": "German",
    }
    for name, value in steering.items():
        monkeypatch.setenv(name, value)
    with embedded_postgres(warm_path, durable=False) as postgres:
        # A client reads this variable too, and would send it to the server.
        monkeypatch.delenv("PGDATESTYLE")
        with psycopg.connect(postgres.url) as connection:
            assert connection.execute("select current_user, current_database()").fetchone() == (
                "postgres",
                "postgres",
            )
            assert connection.execute("show datestyle").fetchone() == ("ISO, MDY",)


def test_postgres_16_runs_and_its_data_are_refused_by_18(tmp_path: Path) -> None:
    with (
        embedded_postgres(tmp_path, durable=False, postgres_version=16) as postgres,
        psycopg.connect(postgres.url) as connection,
    ):
        assert connection.info.server_version // 10_000 == 16
    with pytest.raises(Refused) as refusal, embedded_postgres(tmp_path):
        pass
    assert str(refusal.value) == (
        f"the data directory '{tmp_path}' was created by postgres 16, not 18: start it with postgres 16, "
        "or choose another with --data and copy the data with pg_dump"
    )


def test_a_version_that_no_wheel_has_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidInput, match="there is no embedded postgres 17: choose 16 or 18"),
        embedded_postgres(tmp_path, postgres_version=17),
    ):
        pass


def test_an_incomplete_draft_is_deleted(tmp_path: Path) -> None:
    draft = tmp_path / "postgres.draft-abc"
    (draft / "base").mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    with embedded_postgres(tmp_path, durable=False) as postgres:
        assert postgres.alive
        assert not draft.exists()


def test_a_pid_file_that_names_another_process_does_not_prevent_a_start(warm_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "100"])
    try:
        with embedded_postgres(warm_path, durable=False) as postgres:
            postgres.kill()
            pid_file = warm_path / "postgres" / "postmaster.pid"
            _, rest = pid_file.read_text().split("\n", 1)
            pid_file.write_text(f"{stranger.pid}\n{rest}")
            postgres.start()
            with psycopg.connect(postgres.url) as connection:
                assert connection.execute("select 1").fetchone() == (1,)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_pid_file_that_names_a_postgres_of_this_directory_is_respected(
    warm_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedded_postgres(warm_path, durable=False):
        pass
    cluster = warm_path / "postgres"
    # The process table has only the real path.
    link = warm_path.with_name("link")
    link.symlink_to(warm_path)
    other = subprocess.Popen(["sleep", "100"], cwd=cluster)
    try:
        (cluster / "postmaster.pid").write_text(f"{other.pid}\n")
        monkeypatch.setattr(server, "START_TIMEOUT_S", 0.2)
        with (
            pytest.raises(Refused, match=f"is in use by process {other.pid}:"),
            embedded_postgres(link, durable=False),
        ):
            pass
    finally:
        other.kill()
        other.wait()
    assert (cluster / "postmaster.pid").exists()


def test_a_restart_waits_for_the_backends_of_a_killed_postmaster(
    warm_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedded_postgres(warm_path, durable=False) as postgres:
        connection = psycopg.connect(postgres.url)
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        postgres.kill()
        try:
            with monkeypatch.context() as shortened:
                shortened.setattr(server, "START_TIMEOUT_S", 0.3)
                with pytest.raises(Refused, match="is in use by process"):
                    postgres.start()
        finally:
            os.kill(backend, signal.SIGCONT)
        postgres.start()
        assert postgres.alive
        connection.close()


def test_a_stopped_server_has_no_pid(warm_path: Path) -> None:
    with embedded_postgres(warm_path, durable=False) as postgres:
        postgres.stop()
        with pytest.raises(Refused, match="postgres is not running"):
            _ = postgres.pid


def test_a_setting_that_postgres_rejects_is_shown_with_the_log(warm_path: Path) -> None:
    with embedded_postgres(warm_path, durable=False):
        pass
    with (warm_path / "postgres" / "postgresql.conf").open("a") as settings:
        settings.write("\nwork_mem = 'plenty'\n")
    with pytest.raises(Unreachable) as failure, embedded_postgres(warm_path, durable=False):
        pass
    assert str(failure.value).startswith(
        f"postgres did not start (exit code 1); its log '{warm_path / 'postgres.log'}' ends with:\n"
    )
    assert 'invalid value for parameter "work_mem": "plenty"' in str(failure.value)


def test_a_failing_initdb_is_shown_with_the_log(
    tmp_path: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_binaries(short_path, monkeypatch, postgres="exit 1", initdb="echo no space on disk; exit 3")
    with pytest.raises(Unreachable) as failure, embedded_postgres(tmp_path):
        pass
    assert str(failure.value) == (
        f"postgres initdb failed (exit code 3); its log '{tmp_path / 'postgres.log'}' ends with:\n"
        "    no space on disk"
    )
    assert not (tmp_path / "postgres").exists()


def test_a_server_that_is_never_ready_is_killed(
    tmp_path: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("18\n")
    _fake_binaries(short_path, monkeypatch, postgres="exec sleep 100")
    monkeypatch.setattr(server, "START_TIMEOUT_S", 0.3)
    with pytest.raises(Unreachable, match="postgres was not ready in time"), embedded_postgres(tmp_path):
        pass
    assert users_of(tmp_path) == {}
