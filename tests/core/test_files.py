"""A file is written completely, or stays unchanged."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tocsin.core.errors import InvalidInput
from tocsin.core.files import written_whole


def test_a_file_replaces_the_old_one_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    path.chmod(0o640)
    with written_whole(path) as being_written:
        being_written.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_write_leaves_only_the_old_file(tmp_path: Path, failure: type[BaseException]) -> None:
    path = tmp_path / "recording.gz"
    path.write_text("old")

    def write_a_part() -> None:
        with written_whole(path) as being_written:
            being_written.write_text("ne")
            raise failure

    with pytest.raises(failure):
        write_a_part()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(tmp_path / "there")
    with written_whole(tmp_path / "here") as being_written:
        being_written.write_text("new")
    assert (tmp_path / "here").is_symlink()
    assert (tmp_path / "there").read_text() == "new"


def test_a_file_that_is_not_regular_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDWR)
    try:
        with written_whole(pipe) as being_written:
            being_written.write_text("new")
        assert pipe.is_fifo()
        assert os.read(reading, 10) == b"new"
    finally:
        os.close(reading)


def test_a_failed_write_is_reported_with_its_reason(tmp_path: Path) -> None:
    def fill(path: Path) -> None:
        with written_whole(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(path: Path) -> None:
        with written_whole(path) as being_written:
            being_written.write_text("new")

    for path, write_to, why in (
        (tmp_path / "full", fill, "No space left on device"),
        (tmp_path / "missing" / "report.html", write, "No such file or directory"),
    ):
        with pytest.raises(InvalidInput) as refused:
            write_to(path)
        assert str(refused.value) == f"{path} cannot be written ({why}): name another file"


def test_a_new_file_is_private_and_its_draft_follows_no_link(tmp_path: Path) -> None:
    """F26: a link under the name of the draft would be followed, and the umask made it public."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "recording.gz"
    (tmp_path / f".{path.name}.{os.getpid()}.part").symlink_to(victim)
    with written_whole(path) as being_written:
        assert being_written.stat().st_mode & 0o777 == 0o600
        being_written.write_text("new")
    assert victim.read_text() == "precious"
    assert path.stat().st_mode & 0o777 == 0o600
