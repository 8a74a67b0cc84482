"""A publisher without a lease, in a process of its own, to be killed: prints the first positions it reaches.

`python -m tests.cdc.publisher_process`, with the settings in the environment.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from cdc.chain import ChainBroken
from tests.cdc.published_records import live
from tocsin.core.settings import Settings


async def main(settings: Settings) -> None:
    async with live(settings) as publisher:
        await publisher.reader.listen()
        # Not all positions: a pipe that the test does not read fills up, and would stop the publisher.
        for turn in itertools.count():
            try:
                if not await publisher.step():
                    await publisher.reader.wait_for_commit(0.2)
            except ChainBroken:
                await publisher.resume()
            if turn < 100:
                sys.stdout.write(f"{publisher.publisher.position}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Settings()))
