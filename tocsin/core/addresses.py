"""The addresses of the servers of a `tocsin up` on this machine.

Guarantee: the variables `TOCSIN_POSTGRES` and `TOCSIN_NATS` have priority. Without them, commands
and the producer of `tocsin.client` use the addresses that the running `up` wrote to a file in its
data directory, `TOCSIN_DATA` or `.tocsin`. It removes the file when it stops.

The file is used only if it and its directory belong to us and no other user can write to them, and
only if it names a unix socket below that directory and a NATS on the loopback interface. In a
directory of a stranger, a command would otherwise send passwords and commands to their server.

Why: after `tocsin up` in one terminal, `tocsin upcoming` works in another without settings. On
failure: a file that is not trusted is ignored. The file of an `up` that was killed names servers that
do not answer, and the error contains their address.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from tocsin.core.private_files import write_private

if TYPE_CHECKING:
    from tocsin.core.settings import Settings

_MAX_LENGTH = 10_000
_LOCAL_NATS = re.compile(r"nats://([a-z0-9]+:[a-z0-9]+@)?127\.0\.0\.1:[0-9]{1,5}")
_INBOX = re.compile("[A-Za-z0-9_]{1,64}")
DEFAULT_DATA = Path(".tocsin")
DATA_VARIABLE = "TOCSIN_DATA"
_FILE = "addresses.json"
_KEYS = ("postgres", "nats")
_ADMIN = "nats_admin"


def read_addresses() -> dict[str, str]:
    """The addresses by setting; empty if no `up` runs there, or if the file is damaged or not ours."""
    data_dir = Path(os.environ.get(DATA_VARIABLE) or DEFAULT_DATA)
    try:
        directory = data_dir.resolve(strict=True)
        addresses = json.loads(_read_own(directory))
        found = {key: str(addresses[key]) for key in _KEYS}
        found |= {key: str(addresses[key]) for key in ("nats_inbox", _ADMIN) if key in addresses}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if _is_local(found, directory) else {}


def _read_own(directory: Path) -> str:
    """The content of the file. `OSError` if it, or its directory, is not ours alone to write."""
    _check_own(directory.stat())
    opened = os.open(directory / _FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, encoding="utf-8") as file:
        _check_own(os.fstat(opened))
        return file.read(_MAX_LENGTH)


def _check_own(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("not ours alone")


def _is_local(addresses: dict[str, str], directory: Path) -> bool:
    postgres = urlsplit(addresses["postgres"])
    options = dict(parse_qsl(postgres.query))
    if (
        postgres.scheme not in ("postgresql", "postgres")
        or postgres.hostname
        or set(options) - {"host", "port"}
    ):
        return False
    urls = [addresses[key] for key in ("nats", _ADMIN) if key in addresses]
    if not all(_LOCAL_NATS.fullmatch(url) for url in urls):
        return False
    return _INBOX.fullmatch(addresses.get("nats_inbox", "_INBOX")) is not None and _is_own_socket(
        options, directory
    )


def _is_own_socket(options: dict[str, str], directory: Path) -> bool:
    """Whether the socket is in a directory that only the account of the server can enter.

    A path that is too long for a socket is replaced by one in the directory for temporary files.
    """
    host = Path(options.get("host", ""))
    if not host.is_absolute() or ".." in host.parts:
        return False
    noted = directory / "postgres.socket"
    return host.is_relative_to(directory) or (noted.is_file() and noted.read_text() == str(host))


def with_addresses(settings: Settings) -> Settings:
    """The settings; addresses that they do not have come from a running `up`."""
    addresses = read_addresses()
    missing = {key: addresses[key] for key in _KEYS if key in addresses and not getattr(settings, key)}
    if "nats" in missing and "nats_inbox" in addresses:
        missing["nats_inbox"] = addresses["nats_inbox"]
    return settings.model_copy(update=missing)


def as_admin(settings: Settings) -> Settings:
    """With the user of a running `up` that may change streams, if the settings are those of that `up`."""
    addresses = read_addresses()
    if _ADMIN not in addresses or settings.nats != addresses["nats"]:
        return settings
    return settings.model_copy(update={"nats": addresses[_ADMIN], "nats_inbox": "_INBOX"})


@contextmanager
def publish_addresses(data_dir: Path, postgres: str, nats: str, **others: str) -> Iterator[None]:
    """`others` are `nats_inbox` and `nats_admin`."""
    file = data_dir / _FILE
    write_private(file, (json.dumps({"postgres": postgres, "nats": nats, **others}) + "\n").encode())
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
