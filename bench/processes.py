"""Services in processes of their own, as in production."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tocsin.core.settings import Settings

_MAIN = "from tocsin.cli import main; main()"


def start(settings: Settings, role: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "TOCSIN_POSTGRES": settings.postgres,
        "TOCSIN_NATS": settings.nats,
        "TOCSIN_LEASE_TTL_S": str(settings.lease_ttl_s),
        "TOCSIN_LOG_LEVEL": "error",
    }
    return subprocess.Popen([sys.executable, "-c", _MAIN, "run", role], env=environment)


@contextmanager
def running(settings: Settings, *roles: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes = [start(settings, role) for role in roles]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
