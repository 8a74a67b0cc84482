"""An embedded NATS server with JetStream, on its own port at 127.0.0.1.

Guarantee: after `start`, JetStream answers at `url`. A restart by the same launcher keeps the port,
and the next launcher gets the same port if it is still free. A client needs the password of a user.
They follow from one random text in a file that only its owner can read: any local user can connect to
a port, but must not read records, forge them or take the lease of the clock. Each service has a user
of its own with the permissions of its role (`url_of`); the user of `url` may do everything.

Why this way: the port is below the range that the system uses for outgoing connections. Inside that
range a client that redials a dead server can get the very port that it dials, connect to itself and
keep the server from coming back. Ready means that the banner of our server (recognised by its name)
has `"jetstream":true`: the port opens before JetStream is up, and another process may have the
port.

On failure: a port in use is replaced at the first start and waited for at a restart; anything else
is `Unreachable` with the log. NATS survives SIGKILL (what it acknowledged is written), so that is
its death signal: it works on a frozen server too.
"""

import contextlib
import hashlib
import itertools
import json
import os
import re
import secrets
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from tocsin.core.private_files import open_private, refuse_link, write_private
from tocsin.embedded import binaries
from tocsin.embedded.account import Account, choose_account, own_account
from tocsin.embedded.locks import pause
from tocsin.embedded.server import EmbeddedServer
from tocsin.nats_access.embedded_users import embedded_users, user_password

_HOST = "127.0.0.1"
_USER = "tocsin"
_PASSWORD = re.compile("[0-9a-f]{48}")
_MAX_PAYLOAD_BYTES = 1_048_576
_LOWEST_PORT = 10_240
_HIGHEST_PORT = 65_535
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_EPHEMERAL_START = 32_768


class Nats(EmbeddedServer):
    name = "nats"
    stop_signal = signal.SIGTERM

    def __init__(self, data_dir: Path, namespace: str = "tocsin") -> None:
        """The permissions of the users are for the streams of `namespace`."""
        super().__init__(data_dir)
        self._namespace = namespace
        self._port: int | None = None
        self._store = data_dir / "nats"
        self._port_path = data_dir / "nats.port"
        self._config_path = data_dir / "nats.conf"
        self._password_path = data_dir / "nats.password"
        self._password = ""
        digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()
        self._server_name = f"tocsin-{digest[:16]}"

    @property
    def url(self) -> str:
        """With the credentials of a user that may do everything, for those who may read our files."""
        return f"nats://{_USER}:{self._password}@{_HOST}:{self._port}"

    def url_of(self, user: str) -> str:
        """With the credentials of one of `embedded_users`."""
        return f"nats://{user}:{user_password(self._password, user)}@{_HOST}:{self._port}"

    @property
    def shown_url(self) -> str:
        """Without the credentials."""
        return f"nats://{_HOST}:{self._port}"

    def _start(self, lock_fd: int, deadline: float) -> None:
        binary = binaries.nats_binary()
        refuse_link(self._store)
        account = self._account(binary)
        self._store.mkdir(mode=0o700, exist_ok=True)
        account.take_over(self._store)
        self._password = self._kept_password()
        for port in self._ports():
            if time.monotonic() > deadline:
                raise self._failed(f"found port {port} in use")
            if not _free(port):
                pause()
                continue
            self._write_config(port)
            os.chown(self._config_path, account.owner, account.owner_group, follow_symlinks=False)
            self._spawn(
                [*account.prefix, binary, "-c", self._config_path],
                lock_fd,
                death_signal=signal.SIGKILL,
                user=account.user,
                group=account.group,
            )
            if self._ready(port, deadline):
                self._remember(port)
                return
            self._forget_process()

    def _account(self, binary: Path) -> Account:
        if not os.access(binary, os.X_OK):
            return own_account()  # the start reports it
        return choose_account(binary, self.data_dir)

    def _ports(self) -> Iterator[int]:
        if self._port is not None:
            return itertools.repeat(self._port)
        return itertools.chain(self._remembered(), _random_ports())

    def _remembered(self) -> list[int]:
        with contextlib.suppress(OSError, ValueError):
            port = int(self._port_path.read_text(encoding="ascii"))
            return [port] if _LOWEST_PORT <= port <= _HIGHEST_PORT else []
        return []

    def _remember(self, port: int) -> None:
        self._port = port
        draft = self._port_path.with_suffix(".port.new")
        write_private(draft, f"{port}\n".encode("ascii"))
        draft.replace(self._port_path)

    def _kept_password(self) -> str:
        """The password of this data directory: random, and the same for every launcher."""
        opened = open_private(self._password_path, os.O_RDWR)
        with os.fdopen(opened, "r+", encoding="ascii", errors="replace") as file:
            password = file.read(200).strip()
            if not _PASSWORD.fullmatch(password):
                password = secrets.token_hex(24)
                file.seek(0)
                file.truncate()
                file.write(f"{password}\n")
        return password

    def _write_config(self, port: int) -> None:
        # NATS needs a new line between entries. A power failure takes at most the last second of
        # acknowledged datapoints with it (the default is two minutes). `always` would take none, and
        # was measured at 1,300 messages per second instead of 26,000.
        write_private(
            self._config_path,
            b'server_name: "%b"\nhost: "%b"\nport: %d\nmax_payload: %d\n'
            b"%b"
            b'jetstream {\n  store_dir: "%b"\n  sync_interval: 1s\n}\n'
            % (
                self._server_name.encode(),
                _HOST.encode(),
                port,
                _MAX_PAYLOAD_BYTES,
                embedded_users(self._namespace, _USER, self._password).encode(),
                os.fsencode(self._store).replace(b"\\", b"\\\\").replace(b'"', b'\\"'),
            ),
        )

    def _ready(self, port: int, deadline: float) -> bool:
        """Wait until the server is ready; False if another process has taken the port meanwhile."""
        while time.monotonic() < deadline:
            if not self.alive:
                if "address already in use" in self._log_since_start():
                    return False
                raise self._failed("did not start")
            banner = _banner(port)
            if banner.get("server_name") == self._server_name and banner.get("jetstream") is True:
                return True
            pause()
        raise self._failed("was not ready in time")


def _banner(port: int) -> dict[str, object]:
    """The first line of the protocol, `INFO {...}`; empty if there is none."""
    with contextlib.suppress(OSError, ValueError):
        with socket.create_connection((_HOST, port), 0.5) as connection, connection.makefile("rb") as lines:
            line = lines.readline()
        if line.startswith(b"INFO "):
            parsed = json.loads(line[5:])
            return parsed if isinstance(parsed, dict) else {}
    return {}


def _free(port: int) -> bool:
    with socket.socket() as probe:
        # As the server does: connections of a dead server in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


def _random_ports() -> Iterator[int]:
    start = _USUAL_EPHEMERAL_START
    with contextlib.suppress(OSError, ValueError, IndexError):
        start = int(_EPHEMERAL_RANGE.read_text(encoding="ascii").split()[0])
    if start < _LOWEST_PORT + 1_000:
        start = _USUAL_EPHEMERAL_START
    while True:
        yield _LOWEST_PORT + secrets.randbelow(start - _LOWEST_PORT)
