"""The account under which Postgres runs.

Guarantee: Postgres never runs as root, no account is created, and no permission of a directory that
is not ours is changed.

Why this way: Postgres refuses to run as root. As an ordinary user it runs as that user. As root it
runs as `nobody`, if that account can reach the binaries and the data directory. Both are tried and
not computed, because access lists and mounts matter too. If it cannot (a virtual environment under
a closed home directory), a user namespace makes the files of root appear as those of `nobody`.

On failure: `Refused`, with the reason and two remedies.
"""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tocsin.core.errors import Refused
from tocsin.core.private_files import refuse_link

# initdb needs an account with an entry in the password file.
_NAMES = ("nobody", "daemon")
_PROBE_TIMEOUT_S = 20.0


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


def choose_account(program: Path, data_dir: Path) -> Account:
    if os.geteuid() != 0:
        return Account(owner=os.geteuid(), owner_group=os.getegid())
    uid, gid = _unprivileged()
    other_user = Account(owner=uid, owner_group=gid, user=uid, group=gid)
    if _works(other_user, program, data_dir):
        return other_user
    unshare = shutil.which("unshare")
    if unshare is not None:
        prefix = (unshare, "--user", f"--map-user={uid}", f"--map-group={gid}", "--")
        in_namespace = Account(owner=0, owner_group=0, prefix=prefix)
        if _works(in_namespace, program, data_dir):
            return in_namespace
    raise Refused(
        f"postgres does not run as root, and the user '{pwd.getpwuid(uid).pw_name}' cannot reach both "
        f"'{program}' and '{data_dir}'",
        remedy="start as an ordinary user, or choose another with --data",
    )


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
    """Whether the account can run the program from inside the data directory. Runs it once."""
    command: list[str | Path] = [
        *account.prefix,
        "/bin/sh",
        "-c",
        'cd "$1" && exec "$2" --version',
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
