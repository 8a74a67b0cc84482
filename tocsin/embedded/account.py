"""Under which account Postgres runs.

Guarantee: Postgres never runs as root, no account is added, and no permission of a directory that is not
ours is changed.

Why this way: Postgres refuses root. As an ordinary user it simply runs as that user. As root it runs as
`nobody`, if that account can reach the binaries and the data directory; both are tried, not computed,
because access lists and mounts have a say too. Where it cannot (a virtual environment under a home
directory that is closed to others), a user namespace lets root's own files appear as `nobody`'s.

On failure: `Refused`, with the reason and the two ways out.
"""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tocsin.core.errors import Refused

# initdb insists on an account that has an entry in the password file.
_NAMES = ("nobody", "daemon")
_PROBE_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Account:
    """How to run a program: as whom, behind which prefix, and who owns its files on disk."""

    owner: int
    owner_group: int
    prefix: tuple[str, ...] = ()
    user: int | None = None
    group: int | None = None

    def take_over(self, directory: Path) -> None:
        """Makes a tree ours to use; the top comes last, so that a kill half way is seen next time."""
        if directory.stat().st_uid == self.owner:
            return
        for folder, folders, files in os.walk(directory, topdown=False):
            for name in (*folders, *files):
                os.lchown(Path(folder) / name, self.owner, self.owner_group)
        os.lchown(directory, self.owner, self.owner_group)


def choose_account(program: Path, data_dir: Path) -> Account:
    if os.geteuid() != 0:
        return Account(owner=os.geteuid(), owner_group=os.getegid())
    uid, gid = _unprivileged()
    switched = Account(owner=uid, owner_group=gid, user=uid, group=gid)
    if _works(switched, program, data_dir):
        return switched
    unshare = shutil.which("unshare")
    if unshare is not None:
        prefix = (unshare, "--user", f"--map-user={uid}", f"--map-group={gid}", "--")
        inside = Account(owner=0, owner_group=0, prefix=prefix)
        if _works(inside, program, data_dir):
            return inside
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
    """Runs the program once from inside the data directory, as the account would."""
    reach: list[str | Path] = [
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
            reach,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            user=account.user,
            group=account.group,
            extra_groups=None if account.user is None else [],
            timeout=_PROBE_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return result.returncode == 0
