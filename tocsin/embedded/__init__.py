"""Embedded Postgres and NATS: real servers from wheels, as children of this process.

Guarantees: inside `with embedded_servers(data_dir)` both servers are ready at `postgres_url` and
`nats_url`. They stop at the end of the block, and they die with this process even if it is killed.
Data survives every restart. One launcher at a time uses a data directory. A kill at any moment
leaves a directory that the next start accepts.

Start from the main thread, before pools and loops: the kernel ties a child to the thread that
forked it.

On failure: `Refused` (the directory is in use, or of another version) or `Unreachable` (a server
did not start; the message has the end of its log).
"""

from tocsin.embedded.nats import Nats
from tocsin.embedded.postgres import Postgres
from tocsin.embedded.servers import Servers, embedded_nats, embedded_postgres, embedded_servers

__all__ = ["Nats", "Postgres", "Servers", "embedded_nats", "embedded_postgres", "embedded_servers"]
