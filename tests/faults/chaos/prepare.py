"""A new installation: database, rules, data stream and pulses. Prints the first times of the pulses as JSON.

It runs by its path, so that the code of another source tree does all of this. The rule file is its
argument, and the servers are in the environment.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

from nats.errors import Error as NatsError

from migrations.runner import migrate
from rules.apply import apply
from rules.documents.load import load_text
from rules.lanes.data_stream import ensure_data_stream
from tests.faults.workload import arm_pulses
from tests.sessions import open_sessions
from tests.wait import eventually
from timers.working_set import database_now
from tocsin.core.audit import Actor
from tocsin.core.bus import open_bus
from tocsin.core.settings import Settings

_WITHIN_S = 240.0


async def main(rules: str) -> None:
    settings = Settings()
    with_long_timeouts = settings.model_copy(update={"lease_ttl_s": 60.0})
    async with open_sessions(with_long_timeouts) as open_session, open_bus(settings, "chaos") as bus:
        connection = await open_session("chaos")
        await migrate(connection)
        actor = Actor("chaos", "test", await database_now(connection))
        await apply(connection, load_text(rules), actor)

        async def is_made() -> bool:
            with suppress(NatsError, TimeoutError):  # a new cluster has no leader for some seconds
                await ensure_data_stream(bus.jetstream(timeout=2), settings, 1)
                return True
            return False

        await eventually(is_made, "the data stream exists", _WITHIN_S)
    firsts = await arm_pulses(with_long_timeouts)
    sys.stdout.write(json.dumps({name: first.isoformat() for name, first in firsts.items()}) + "\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).read_text(encoding="utf-8")))
