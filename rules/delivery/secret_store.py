"""The secrets of a worker: where their values are read from, and which hosts may receive them.

Guarantee: an author of rules names a secret and reaches nothing else. A value is read from a regular
file directly below `TOCSIN_SECRETS_DIR` or below the credentials directory of systemd, or from a
variable `TOCSIN_SECRET_<NAME>`. A file is opened without following a link, must belong to root or to
the account of the worker, and must not be writable by others. It is read at each use, so a replaced
file needs no restart, and outside of the event loop, so a hung file system delays only deliveries
that need it.

A value is sent only to the hosts to which it is bound. A value that is a url is bound to the host of
that url. Any other value needs an entry in `TOCSIN_SECRETS_BOUND`, or in the file `bindings` of the
secrets directory: `name@host`, or `name@host/channel` if only that channel may use it. Without this
check an author could send the secret of another team to a server of their own.

On failure: `InvalidInput` that names the secret and the remedy, never a value.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from schemas.values.secret import SECRET_NAME, secret_variable
from tocsin.core.errors import InvalidInput, Unreachable
from tocsin.core.secret_bindings import BINDINGS_FILE, SecretBinding, parse_bindings
from tocsin.core.settings import Settings

T = TypeVar("T")
_MAX_BYTES = 65_536
_READ_TIMEOUT_S = 5.0
# Apart from the default threads: those resolve names, and a hung mount must not take them all.
_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="secrets")


@dataclass(frozen=True)
class SecretStore:
    folders: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    bindings: tuple[SecretBinding, ...] = ()

    @classmethod
    def from_settings(cls, settings: Settings) -> SecretStore:
        folders = [settings.secrets_dir, settings.credentials_dir]
        return cls(
            tuple(Path(folder) for folder in folders if folder),
            settings.secret_variables,
            parse_bindings(settings.secrets_bound),
        )

    async def read(self, name: str) -> str:
        """The value of a secret, which may be sent nowhere before `check_use`."""
        if not SECRET_NAME.fullmatch(name):
            raise InvalidInput(f"{name[:80]!r} is not the name of a secret")
        value = await _in_thread(name, self._find, name)
        if not value:
            raise InvalidInput(f"the secret {name!r} is empty", remedy="set it for the worker")
        return value

    def _find(self, name: str) -> str:
        for folder in self.folders:
            value = _read_file(folder, name)
            if value is not None:
                return value
        value = self.variables.get(secret_variable(name))
        if value is None:
            raise InvalidInput(
                f"the worker has no secret {name!r}",
                remedy=f"put the file {name!r} into its TOCSIN_SECRETS_DIR, or set {secret_variable(name)}",
            )
        return value

    async def check_use(self, name: str, value: str, host: str, channel: str) -> None:
        """Raise `InvalidInput` if the secret may not be sent to this host, or not by this channel."""
        bindings = [one for one in await self._all_bindings() if one.name == name]
        own_host = _host_of(value)
        if not bindings and own_host is not None:
            if own_host == host.lower():
                return
            raise InvalidInput(
                f"the secret {name!r} is a url and is sent to its own host only, not to {host}",
                remedy=f"use it as the url, or bind it: TOCSIN_SECRETS_BOUND={name}@{host}",
            )
        if any(one.allows(host, channel) for one in bindings):
            return
        where = f"{host} by the channel {channel!r}" if channel else host
        raise InvalidInput(
            f"the secret {name!r} may not be sent to {where}",
            remedy=f"add {name}@{host} to TOCSIN_SECRETS_BOUND of the worker if it should be",
        )

    async def _all_bindings(self) -> tuple[SecretBinding, ...]:
        if not self.folders:
            return self.bindings
        text = await _in_thread(BINDINGS_FILE, _read_file, self.folders[0], BINDINGS_FILE)
        return self.bindings + parse_bindings(text or "")


async def _in_thread(name: str, read: Callable[..., T], *arguments: object) -> T:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_READ_TIMEOUT_S):
            return await loop.run_in_executor(_threads, read, *arguments)
    except TimeoutError:
        raise Unreachable(f"the secret {name!r} was not read within {_READ_TIMEOUT_S:g} s") from None


def _host_of(value: str) -> str | None:
    """The host of a value that is a url; '' for one without a host, such as an apprise url."""
    try:
        parts = urlsplit(value)
    except ValueError:
        return None
    if "://" not in value or not parts.scheme:
        return None
    return (parts.hostname or "") if parts.scheme in ("http", "https") else ""


def _read_file(folder: Path, name: str) -> str | None:
    """None if there is no such file."""
    # O_NONBLOCK: opening a named pipe would wait for its writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _check_owner(os.fstat(directory), f"the directory of secrets {str(folder)!r}")
            opened = os.open(name, flags, dir_fd=directory)
        finally:
            os.close(directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = (error.strerror or "unknown").lower()
        raise InvalidInput(f"the secret {name!r} cannot be read: {reason}") from None
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"the secret {name!r} is not a regular file")
        _check_owner(status, f"the file of the secret {name!r}")
        raw = _read_all(opened)
    finally:
        os.close(opened)
    if len(raw) > _MAX_BYTES:
        raise InvalidInput(
            f"the secret {name!r} is larger than {_MAX_BYTES} bytes", remedy="check that it is the right file"
        )
    try:
        return raw.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise InvalidInput(f"the secret {name!r} is not text in UTF-8") from None


def _read_all(opened: int) -> bytes:
    """At most one byte more than a secret may have."""
    pieces = bytearray()
    while len(pieces) <= _MAX_BYTES and (piece := os.read(opened, _MAX_BYTES + 1 - len(pieces))):
        pieces += piece
    return bytes(pieces)


def _check_owner(status: os.stat_result, what: str) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise InvalidInput(
            f"{what} belongs to the user {status.st_uid}", remedy="give it to the account of the worker"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidInput(f"{what} can be written by others", remedy="chmod go-w")
    # Platforms that mount secrets give them to root, readable inside of a container.
    if stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_IROTH and status.st_uid != 0:
        raise InvalidInput(f"{what} can be read by every user", remedy="chmod o-r")
