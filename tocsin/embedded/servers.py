"""Starts the embedded servers on a data directory and stops them at the end of the block.

Guarantee: inside the block both servers are ready. After it, and after any death of this process,
neither is left running.

Why this way: context managers, so that a start that fails half-way stops what had started. The
launcher's lock is taken first and released last.

On failure: the errors of the two servers; a server that does not stop in time is killed.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tocsin.core.errors import InvalidInput
from tocsin.embedded.locks import launcher_lock
from tocsin.embedded.nats import Nats
from tocsin.embedded.postgres import Postgres
from tocsin.embedded.server import EmbeddedServer

DEFAULT_POSTGRES_VERSION = 18


@dataclass(frozen=True, slots=True)
class Servers:
    """Both servers, when they are ready."""

    postgres: Postgres
    nats: Nats

    @property
    def postgres_url(self) -> str:
        return self.postgres.url

    @property
    def nats_url(self) -> str:
        return self.nats.url


@contextlib.contextmanager
def embedded_servers(
    data_dir: Path,
    *,
    durable: bool = True,
    postgres_version: int = DEFAULT_POSTGRES_VERSION,
    namespace: str = "tocsin",
) -> Iterator[Servers]:
    """Both servers on one directory.

    `durable=False` is faster and not safe against a power loss. The users of NATS have permissions for
    the streams of `namespace`.
    """
    data_dir = _checked(data_dir)
    with launcher_lock(data_dir):
        postgres = Postgres(data_dir, durable=durable, version=postgres_version)
        nats = Nats(data_dir, namespace)
        with _running(nats, postgres):
            yield Servers(postgres=postgres, nats=nats)


@contextlib.contextmanager
def embedded_postgres(
    data_dir: Path, *, durable: bool = True, postgres_version: int = DEFAULT_POSTGRES_VERSION
) -> Iterator[Postgres]:
    """Only Postgres. It holds the whole data directory, as `embedded_servers` does."""
    data_dir = _checked(data_dir)
    with launcher_lock(data_dir):
        postgres = Postgres(data_dir, durable=durable, version=postgres_version)
        with _running(postgres):
            yield postgres


@contextlib.contextmanager
def embedded_nats(data_dir: Path) -> Iterator[Nats]:
    """Only NATS. It holds the whole data directory, as `embedded_servers` does."""
    data_dir = _checked(data_dir)
    with launcher_lock(data_dir):
        nats = Nats(data_dir)
        with _running(nats):
            yield nats


@contextlib.contextmanager
def _running(*servers: EmbeddedServer) -> Iterator[None]:
    try:
        for server in servers:
            server.start()
        yield
    finally:
        for server in servers:
            server.request_stop()
        for server in servers:
            server.finish_stop()
            server.close()


def _checked(data_dir: Path) -> Path:
    """The resolved path, because servers report it.

    A line break would corrupt files of Postgres.
    """
    if any(character < " " for character in str(data_dir)):
        raise InvalidInput(
            f"the data directory {str(data_dir)!r} has a control character", remedy="choose another name"
        )
    return data_dir.expanduser().resolve()
