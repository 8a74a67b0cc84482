"""Files that a command writes.

Guarantee: the file under its name is complete, or it is the one that was there before, whatever
ends the writing: it is written under another name and renamed when it is complete. That name cannot
be guessed, and the file is created by us, so no other user can place a link there. A new file is
readable by its owner only, because recordings and reports hold payloads. A path that is not a
regular file (a pipe, a device) is written directly.

On failure to write: `InvalidInput` with the reason, because the path comes from the user. An outage
of a server in the meantime is another kind of error and is not changed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tocsin.core.errors import InvalidInput


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield the path to write to. Its file is renamed to `path` when the block has ended."""
    try:
        if path.exists() and not path.is_file():
            yield path
        else:
            with _temporary(path.resolve()) as temporary:
                yield temporary
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written ({error.strerror})", remedy="name another file"
        ) from None


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    opened, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(opened)
    temporary = Path(name)
    try:
        yield temporary
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
