"""An embedded Postgres on a unix socket that only its owner can reach.

Guarantee: after `start`, `url` answers. The data directory is either complete or absent, at
whatever point a kill happened. Data of another major version is never touched.

Why this way: `initdb` writes into a sibling directory that gets its final name by one rename. The
socket is inside the data directory, which no other account may enter, so no password is needed. A
path that a socket address cannot hold (over 107 bytes) or that libpq would split moves it to a
private directory under the temporary directory of the system.

On failure: `Unreachable` with the log. A `postmaster.pid` whose process is gone, or is not a
Postgres of this directory, is removed: Postgres itself would refuse to start if any process has
that pid by now.
"""

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg

from tocsin.core.errors import Refused
from tocsin.core.private_files import refuse_link, write_private
from tocsin.embedded import binaries
from tocsin.embedded.account import Account, choose_account, creating_account
from tocsin.embedded.locks import in_use, pause
from tocsin.embedded.server import EmbeddedServer

_PORT = 5432
_SOCKET_NAME = f".s.PGSQL.{_PORT}"
_SOCKET_PATH_BYTES = 107
# libpq and Postgres both parse a comma as a separator of directories.
_UNFIT_FOR_SOCKET = re.compile(r'[,"\x00-\x1f]|\s$')
_READY_LINE = 7
_PROC = Path("/proc")

_OPTIONS = {
    "listen_addresses": "",
    "port": str(_PORT),
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "synchronous_commit": "on",
}
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


class Postgres(EmbeddedServer):
    name = "postgres"
    stop_signal = signal.SIGINT  # fast shutdown: disconnects clients and leaves the data clean

    def __init__(self, data_dir: Path, *, durable: bool, version: int) -> None:
        super().__init__(data_dir)
        self._durable = durable
        self._version = version
        self._cluster = data_dir / "postgres"
        self._socket_note = data_dir / "postgres.socket"
        self._socket_dir = self._cluster

    @property
    def url(self) -> str:
        host = quote(os.fsencode(self._socket_dir), safe="")
        return f"postgresql://postgres@/postgres?host={host}&port={_PORT}"

    def _start(self, lock_fd: int, deadline: float) -> None:
        refuse_link(self._cluster)
        bin_dir = binaries.postgres_bin_dir(self._version)
        self._discard_drafts()
        self._check_version()
        account = choose_account(bin_dir / "postgres", self.data_dir)
        if not self._exists():
            creator = creating_account(account, bin_dir / "initdb", self.data_dir)
            self._create(bin_dir, creator, lock_fd, deadline)
        account.take_over(self._cluster)
        self._remove_stale_pid_file(deadline)
        self._socket_dir = self._choose_socket_dir(account)
        options = _OPTIONS | ({} if self._durable else _NOT_DURABLE)
        options["unix_socket_directories"] = str(self._socket_dir)
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        argv: list[str | Path] = [*account.prefix, bin_dir / "postgres", "-D", self._cluster, *settings]
        self._spawn(argv, lock_fd, death_signal=self.stop_signal, user=account.user, group=account.group)
        self._await_ready(deadline)

    def close(self) -> None:
        super().close()
        if self._socket_dir != self._cluster:
            shutil.rmtree(self._socket_dir, ignore_errors=True)

    def _exists(self) -> bool:
        return (self._cluster / "PG_VERSION").exists()

    def _discard_drafts(self) -> None:
        for draft in self.data_dir.glob("postgres.draft-*"):
            shutil.rmtree(draft, ignore_errors=True)

    def _check_version(self) -> None:
        if self._exists():
            created_by = (self._cluster / "PG_VERSION").read_text(encoding="ascii").strip()
            if created_by != str(self._version):
                raise Refused(
                    f"the data directory '{self.data_dir}' was created by postgres {created_by}, not {self._version}",
                    remedy=f"start it with postgres {created_by}, "
                    "or choose another with --data and copy the data with pg_dump",
                )
        elif self._cluster.exists() and any(self._cluster.iterdir()):
            raise Refused(
                f"'{self._cluster}' has files that are not postgres data",
                remedy="move it away, or choose another with --data",
            )

    def _create(self, bin_dir: Path, account: Account, lock_fd: int, deadline: float) -> None:
        draft = Path(tempfile.mkdtemp(prefix="postgres.draft-", dir=self.data_dir))
        os.chown(draft, account.owner, account.owner_group)
        argv: list[str | Path] = [*account.prefix, bin_dir / "initdb", "-D", draft, "-U", "postgres"]
        argv += ["-A", "trust", "-E", "UTF8", "--locale=C", *([] if self._durable else ["-N"])]
        # A draft has no value, so initdb is killed with the launcher.
        self._spawn(argv, lock_fd, death_signal=signal.SIGKILL, user=account.user, group=account.group)
        assert self._process is not None
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._failed("initdb was not done in time") from None
        if self._process.returncode != 0:
            raise self._failed("initdb failed")
        self._forget_process()
        draft.rename(self._cluster)
        if self._durable:
            _sync_directory(self.data_dir)

    def _remove_stale_pid_file(self, deadline: float) -> None:
        pid_file = self._cluster / "postmaster.pid"
        lines = _lines(pid_file)
        pid = lines[0] if lines else ""
        while pid.isdigit() and _is_postgres_of(int(pid), self._cluster):
            if time.monotonic() > deadline:
                raise in_use(self.data_dir, pid)
            pause()
        pid_file.unlink(missing_ok=True)

    def _choose_socket_dir(self, account: Account) -> Path:
        if _fits(self._cluster):
            return self._cluster
        with contextlib.suppress(OSError, ValueError):
            noted = Path(self._socket_note.read_text(encoding="utf-8"))
            if _is_private(noted, account.owner) and _fits(noted):
                return noted
        for parent in (Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108 mkdtemp makes the name
            if _fits(parent / "tocsin-12345678"):
                fresh = Path(tempfile.mkdtemp(prefix="tocsin-", dir=parent))
                os.chown(fresh, account.owner, account.owner_group)
                write_private(self._socket_note, str(fresh).encode())
                return fresh
        raise Refused(
            f"the path '{self.data_dir}' is too long for a unix socket", remedy="choose another with --data"
        )

    def _await_ready(self, deadline: float) -> None:
        pid_file = self._cluster / "postmaster.pid"
        while time.monotonic() < deadline:
            if not self.alive:
                raise self._failed("did not start")
            lines = _lines(pid_file)
            if len(lines) > _READY_LINE and lines[0] == str(self.pid) and lines[_READY_LINE] == "ready":
                with self._connected_or_failed():
                    return
            pause()
        raise self._failed("was not ready in time")

    @contextlib.contextmanager
    def _connected_or_failed(self) -> Iterator[None]:
        try:
            connection = psycopg.connect(self.url, connect_timeout=10)
        except psycopg.Error as problem:
            raise self._failed(f"runs but does not answer ({problem})") from None
        with contextlib.closing(connection):
            yield


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").split("\n")]
    except OSError:
        return []


def _fits(directory: Path) -> bool:
    if _UNFIT_FOR_SOCKET.search(str(directory)):
        return False
    return len(os.fsencode(directory / _SOCKET_NAME)) <= _SOCKET_PATH_BYTES


def _is_private(directory: Path, owner: int) -> bool:
    """Whether the directory belongs to `owner` and is closed to others.

    Any user may create a directory of that name under a shared parent.
    """
    status = directory.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == owner and not status.st_mode & 0o077


def _is_postgres_of(pid: int, cluster: Path) -> bool:
    if _PROC.exists():
        try:
            return (_PROC / str(pid) / "cwd").readlink() == cluster
        except PermissionError:
            # Only the name of a process of another account is visible.
            return _lines(_PROC / str(pid) / "comm")[:1] == ["postgres"]
        except OSError:
            return False
    listing = subprocess.run(["/bin/ps", "-o", "command=", "-p", str(pid)], capture_output=True, check=False)
    return b"postgres" in listing.stdout and os.fsencode(cluster) in listing.stdout
