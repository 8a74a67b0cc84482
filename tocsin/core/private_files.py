"""Files of a data directory, safe from other users of the machine.

Guarantee: a data directory is used only if it belongs to us and no other user can write to it: a
stranger could otherwise place links there, or data of their own. No link inside of it is followed,
and what is written there is readable by its owner only.

On failure: `Refused`, with the path and the remedy.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tocsin.core.errors import Refused

_ANOTHER = "choose another with --data"


def refuse_foreign_directory(directory: Path) -> None:
    """Check a data directory that exists."""
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise Refused(f"the data directory '{directory}' is not a directory", remedy=_ANOTHER)
    if status.st_uid != os.geteuid():
        raise Refused(
            f"the data directory '{directory}' belongs to the user {status.st_uid}", remedy=_ANOTHER
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Refused(
            f"the data directory '{directory}' can be written by other users",
            remedy=f"chmod go-w '{directory}', or {_ANOTHER}",
        )


def refuse_link(path: Path) -> None:
    """Check a file or directory inside of a data directory, which may be missing."""
    if path.is_symlink():
        raise Refused(f"'{path}' is a link, which is not followed", remedy="remove it")


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a regular file that only its owner can read. Creates it."""
    try:
        opened = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        refuse_link(path)
        raise Refused(f"'{path}' cannot be opened ({error.strerror})", remedy=_ANOTHER) from None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise Refused(f"'{path}' is not a regular file", remedy="remove it")
    os.fchmod(opened, 0o600)
    return opened


def write_private(path: Path, content: bytes) -> None:
    opened = open_private(path, os.O_WRONLY)
    with os.fdopen(opened, "wb") as file:
        file.truncate(0)
        file.write(content)
