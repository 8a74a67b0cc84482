"""A process that holds a lease until it is killed.

Usage: `python -m tests.clock.lease_process NATS NAMESPACE`.
"""

from __future__ import annotations

import asyncio
import sys

from clock.lease import hold_lease
from tocsin.core.logs import configure_logs
from tocsin.core.settings import Settings


async def hold(nats: str, namespace: str) -> None:
    settings = Settings(nats=nats, namespace=namespace, lease_ttl_s=1.0)
    configure_logs(settings)
    async with hold_lease(settings, "clock") as lease:
        await lease.wait_until_held()
        sys.stdout.write("held\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(hold(*sys.argv[1:]))
