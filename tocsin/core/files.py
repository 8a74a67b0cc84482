"""Files that a command leaves behind.

Guarantee: under its name there is the whole of it or what was there before, whatever ends the writing: it is written
beside, and takes the name when it is whole. What is no ordinary file (a pipe, a device) is written to as it is.

On failure to write, `InvalidInput` with the reason: the place is what a person gave us. That a server went away
meanwhile is an error of another kind, and stays what it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tocsin.core.errors import InvalidInput


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Where to write what shall be at `path` when the block has ended."""
    try:
        if path.exists() and not path.is_file():
            yield path
        else:
            with _beside(path.resolve()) as being_written:
                yield being_written
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written ({error.strerror})", remedy="name another file"
        ) from None


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    being_written = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield being_written
        if path.exists():
            shutil.copymode(path, being_written)
        being_written.replace(path)
    finally:
        being_written.unlink(missing_ok=True)
