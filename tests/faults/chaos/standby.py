"""A standby of an embedded Postgres: streams from it, and is promoted when it is gone."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.wait import eventually_sync
from tocsin.embedded import Postgres, binaries
from tocsin.embedded.locks import pause
from tocsin.embedded.servers import DEFAULT_POSTGRES_VERSION

NAME = "standby"
_WITHIN_S = 60.0


class Standby(Postgres):
    """A copy of the primary in `data_dir`. It reaches the primary through a port of its own."""

    def __init__(self, data_dir: Path, primary: Postgres, port: int) -> None:
        super().__init__(data_dir, durable=False, version=DEFAULT_POSTGRES_VERSION)
        self._copy(primary, port)

    def _copy(self, primary: Postgres, port: int) -> None:
        program = binaries.postgres_bin_dir(DEFAULT_POSTGRES_VERSION) / "pg_basebackup"
        source: dict[str, Any] = conninfo_to_dict(primary.url)
        subprocess.run(
            [program, "-D", self._cluster, "-X", "stream", "-c", "fast", "-d", primary.url],
            check=True,
            capture_output=True,
            timeout=_WITHIN_S,
        )
        address = f"host=127.0.0.1 port={port} user={source['user']} application_name={NAME}"
        with (self._cluster / "postgresql.auto.conf").open("a", encoding="utf-8") as settings:
            settings.write(f"primary_conninfo = '{address}'\n")
        (self._cluster / "standby.signal").touch()
        for copied in self._cluster.glob(".s.PGSQL.*"):
            copied.unlink()

    def _await_ready(self, deadline: float) -> None:
        """A standby is ready when it answers: its pid file never has `ready`."""
        del deadline
        eventually_sync(self._answers, "the standby answers", _WITHIN_S)

    def _answers(self) -> bool:
        if not self.alive:
            raise self._failed("did not start")
        try:
            with psycopg.connect(self.url, connect_timeout=5):
                return True
        except psycopg.OperationalError:
            pause()
            return False

    def promote(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("select pg_promote(true, 60)")
        eventually_sync(self._is_primary, "the standby is promoted", _WITHIN_S)

    def _is_primary(self) -> bool:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute("select not pg_is_in_recovery()").fetchone() == (True,)


def replicates(primary: Postgres) -> bool:
    """Whether the standby has everything that the primary has committed."""
    with psycopg.connect(primary.url, autocommit=True) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_replication where application_name = %s and state = 'streaming'"
            " and replay_lsn >= pg_current_wal_lsn() - 1000000",
            (NAME,),
        ).fetchone()
    return row == (1,)


def require_standby(primary: Postgres) -> None:
    """Make every commit wait for the standby."""
    with psycopg.connect(primary.url, autocommit=True) as connection:
        connection.execute(f"alter system set synchronous_standby_names = '{NAME}'")
        connection.execute("select pg_reload_conf()")
    eventually_sync(lambda: _is_synchronous(primary), "the standby is synchronous", _WITHIN_S)


def _is_synchronous(primary: Postgres) -> bool:
    with psycopg.connect(primary.url, autocommit=True) as connection:
        row = connection.execute("select sync_state from pg_stat_replication").fetchone()
    return row == ("sync",)
