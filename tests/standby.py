"""A synchronous standby of an embedded Postgres, made with `pg_basebackup` from the same binaries."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.wait import eventually_sync
from tocsin.embedded import Postgres, binaries
from tocsin.embedded.account import choose_account
from tocsin.embedded.servers import DEFAULT_POSTGRES_VERSION

_NAME = "standby"
_PORT = 5433


class SynchronousStandby:
    """Started by `synchronous_standby`. `stop` leaves the primary waiting for it."""

    def __init__(self, primary: Postgres, directory: Path) -> None:
        self._primary = primary
        self._cluster = directory / "standby"
        self._bin = binaries.postgres_bin_dir(DEFAULT_POSTGRES_VERSION)
        # The socket of the primary is closed to other users.
        self._account = choose_account(self._bin / "postgres", primary.data_dir)
        self._sockets = Path(tempfile.mkdtemp(prefix="tocsin-", dir="/tmp"))
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        self._cluster.mkdir(mode=0o700)
        for directory in (self._cluster, self._sockets):
            os.chown(directory, self._account.owner, self._account.owner_group)
        parts = conninfo_to_dict(self._primary.url)
        conninfo = f"host='{parts['host']}' port={parts['port']} user=postgres application_name={_NAME}"
        copy = ["pg_basebackup", "-d", conninfo, "-D", str(self._cluster), "-R", "-X", "stream", "-c", "fast"]
        self._run(copy).wait(60)
        with psycopg.connect(self._primary.url, autocommit=True) as session:
            session.execute(f"alter system set synchronous_standby_names = '{_NAME}'".encode())
            session.execute("select pg_reload_conf()")

    def start(self) -> None:
        options = {
            "port": _PORT,
            "unix_socket_directories": self._sockets,
            "listen_addresses": "",
            "max_connections": 200,  # at least that of the primary
            "fsync": "off",
        }
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self._process = self._run(["postgres", "-D", str(self._cluster), *words])
        eventually_sync(self._is_synchronous, "the standby is synchronous")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._sockets)

    def _is_synchronous(self) -> bool:
        with psycopg.connect(self._primary.url, autocommit=True) as session:
            row = session.execute(
                "select 1 from pg_stat_replication where application_name = %s and sync_state = 'sync'",
                (_NAME,),
            ).fetchone()
        return row is not None

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._account.prefix, str(self._bin / command[0]), *command[1:]],
            user=self._account.user,
            group=self._account.group,
            extra_groups=None if self._account.user is None else [],
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


@contextmanager
def synchronous_standby(primary: Postgres, directory: Path) -> Iterator[SynchronousStandby]:
    standby = SynchronousStandby(primary, directory)
    standby.create()
    standby.start()
    try:
        yield standby
    finally:
        with psycopg.connect(primary.url, autocommit=True) as session:
            session.execute("alter system reset synchronous_standby_names")
            session.execute("select pg_reload_conf()")
        standby.remove()
