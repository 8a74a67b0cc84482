"""The account under which the servers run.

Guarantee: no server runs with the rights of root, none shares its account with another program, no
account is created, and no permission of a directory that is not ours is changed.

Why this way: a server that strangers reach should not be able to do more than its work, and Postgres
refuses to run as root. Started by an ordinary user, the servers run as that user. Started by root they
run under a user id of their own that no account has, chosen once for each data directory: an account
such as `nobody` is shared, and its programs could read the memory and the data of the servers. The id is
tried and not computed, because access lists and mounts matter too. If it cannot reach the binaries or the
data directory (a virtual environment under a closed home directory), a user namespace makes the files of
root appear as those of `nobody`, and takes the capabilities of root away.

On failure: `Refused`, with the reason and two remedies.
"""

import os
import pwd
import secrets
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tocsin.core.errors import Refused
from tocsin.core.private_files import open_private, refuse_link

# initdb needs an account with an entry in the password file.
_NAMES = ("nobody", "daemon")
_PROBE_TIMEOUT_S = 20.0
# Reserved for users without an account; containers usually have these ids as well.
_PRIVATE_IDS = range(61_184, 65_520)
_ID_FILE = "servers.uid"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Account:
    """The user and command prefix with which a program runs, and the owner of its files."""

    owner: int
    owner_group: int
    prefix: tuple[str, ...] = ()
    user: int | None = None
    group: int | None = None

    def take_over(self, directory: Path) -> None:
        """Change the owner of a tree.

        The top comes last, so that the next start notices a kill half-way.
        """
        refuse_link(directory)
        if directory.lstat().st_uid == self.owner:
            return
        for folder, folders, files in os.walk(directory, topdown=False):
            for name in (*folders, *files):
                os.lchown(Path(folder) / name, self.owner, self.owner_group)
        os.lchown(directory, self.owner, self.owner_group)


def own_account() -> Account:
    return Account(owner=os.geteuid(), owner_group=os.getegid())


def choose_account(program: Path, data_dir: Path) -> Account:
    """The account of the servers of a data directory. The same at every start, if it still works."""
    if os.geteuid() != 0:
        return own_account()
    number = _private_id(data_dir)
    private = Account(owner=number, owner_group=number, user=number, group=number)
    if _works(private, program, data_dir):
        return private
    uid, gid = _unprivileged()
    unshare = shutil.which("unshare")
    if unshare is not None:
        prefix = (unshare, "--user", f"--map-user={uid}", f"--map-group={gid}", "--")
        in_namespace = Account(owner=0, owner_group=0, prefix=prefix)
        if _works(in_namespace, program, data_dir):
            return in_namespace
    raise Refused(
        f"the servers do not run as root, and the user id {number} cannot reach both '{program}' and '{data_dir}'",
        remedy="start as an ordinary user, or choose another with --data",
    )


def creating_account(account: Account, program: Path, data_dir: Path) -> Account:
    """The account that creates the data of Postgres: `initdb` requires one with a name."""
    if account.user is None:
        return account
    uid, gid = _unprivileged()
    named = Account(owner=uid, owner_group=gid, user=uid, group=gid)
    return named if _works(named, program, data_dir) else account


def _private_id(data_dir: Path) -> int:
    """The user id of this data directory: chosen at random, and kept."""
    opened = open_private(data_dir / _ID_FILE, os.O_RDWR)
    with os.fdopen(opened, "r+", encoding="ascii", errors="replace") as file:
        text = file.read(20).strip()
        if text.isdigit() and int(text) in _PRIVATE_IDS:
            return int(text)
        used = _used_ids()
        number = next(number for number in iter(_random_id, None) if number not in used)
        file.seek(0)
        file.truncate()
        file.write(f"{number}\n")
    return number


def _random_id() -> int:
    return secrets.choice(_PRIVATE_IDS)


def _used_ids() -> set[int]:
    """The ids that an account or a running program has."""
    used = {entry.pw_uid for entry in pwd.getpwall()}
    with suppress(OSError):
        for process in _PROC.iterdir():
            with suppress(OSError):
                used.add(process.stat().st_uid)
    return used


def _unprivileged() -> tuple[int, int]:
    for name in _NAMES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise Refused(
        "postgres does not run as root and there is no user 'nobody'", remedy="start as an ordinary user"
    )


def _works(account: Account, program: Path, data_dir: Path) -> bool:
    """Whether the account can read and run the program, and enter the data directory."""
    command: list[str | Path] = [
        *account.prefix,
        "/bin/sh",
        "-c",
        'cd "$1" && test -x "$2" && cat "$2" > /dev/null',
        "sh",
        data_dir,
        program,
    ]
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=account.user,
            group=account.group,
            extra_groups=None if account.user is None else [],
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return result.returncode == 0
