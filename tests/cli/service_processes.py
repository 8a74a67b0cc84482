"""Services as processes of their own, for tests of commands."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.cli.terminal import TOCSIN


@contextmanager
def running_services(environment: Mapping[str, str | None], *roles: str) -> Iterator[None]:
    """Run `tocsin run ROLE` for each role, and end them."""
    variables = {**os.environ, **{key: value or "" for key, value in environment.items()}}
    processes = [
        subprocess.Popen([*TOCSIN, "run", role], env=variables, stderr=subprocess.DEVNULL) for role in roles
    ]
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(30)
