"""The systemd unit: little exposed, valid, and its roles report to the service manager."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cli.conftest import environment_of
from tests.cli.terminal import TOCSIN
from tests.deploy.notified import notifications
from tests.paths import ROOT
from tests.ports import free_ports
from tocsin.core.settings import Settings

UNIT = ROOT / "deploy" / "systemd" / "tocsin@.service"
# `MemoryDenyWriteExecute` of the unit, by prctl(PR_SET_MDWE). An older kernel does not know it.
HARDENED = "import ctypes; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); from tocsin.cli import main; main()"
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


@needs_systemd
def test_the_exposure_of_a_unit_is_at_most_two() -> None:
    analyzed = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", UNIT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert analyzed.returncode == 0, analyzed.stdout[-200:]


@needs_systemd
def test_systemd_accepts_every_line_of_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / "tocsin@clock.service"
    copy.write_text(UNIT.read_text().replace("/opt/tocsin/bin/tocsin", "/bin/true"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")


@pytest.mark.parametrize("role", ["clock", "cdc", "worker", "api"])
def test_a_role_is_ready_alive_and_ends_with_its_settings_in_files(
    settings: Settings, role: str, tmp_path: Path
) -> None:
    given = {key: value for key, value in environment_of(settings).items() if value}
    subprocess.run([*TOCSIN, "streams", "create"], env={**os.environ, **given}, check=True)
    credentials = ("TOCSIN_POSTGRES", "TOCSIN_NATS")
    for name in credentials:
        (tmp_path / name).write_text(f"{given.pop(name)}\n")
    with tempfile.TemporaryDirectory(prefix="tocsin-") as short, notifications(Path(short)) as manager:
        process = subprocess.Popen(
            [sys.executable, "-c", HARDENED, "run", role],
            cwd=tmp_path,
            env={
                **{name: value for name, value in os.environ.items() if name not in credentials},
                **given,
                "CREDENTIALS_DIRECTORY": str(tmp_path),
                "NOTIFY_SOCKET": str(manager.path),
                "WATCHDOG_USEC": "300000",
                "TOCSIN_API": f"127.0.0.1:{free_ports(1)[0]}",
            },
            stderr=subprocess.DEVNULL,
        )
        try:
            assert manager.next() == ["READY=1"]
            healthy = manager.until("STATUS=running")[-1]
            assert "WATCHDOG=1" in healthy
            process.send_signal(signal.SIGTERM)
            manager.until("STOPPING=1")
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait(30)
