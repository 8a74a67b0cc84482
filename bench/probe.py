"""Measures the duration of one short statement repeatedly, while something else runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tocsin.core.settings import Settings


@contextmanager
def repeated(settings: Settings, query: bytes, pause_s: float) -> Iterator[list[float]]:
    """The durations in seconds. Runs in a thread of its own, so that it waits only for locks."""
    waits: list[float] = []
    stopped = threading.Event()

    def repeat() -> None:
        with psycopg.connect(settings.postgres, autocommit=True) as session:
            while not stopped.wait(pause_s):
                began = time.perf_counter()
                session.execute(query)
                waits.append(time.perf_counter() - began)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield waits
    finally:
        stopped.set()
        thread.join()
