"""A worker in a process of its own that is killed at random between an effect and its outcome.

`python -m tests.rules.crashing_worker SEED`, with the settings in the environment.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys

from rules.actions import performer
from rules.actions.commit import commit_outcome
from rules.actions.run import ActionRun
from rules.runbook import Outcome
from rules.worker import Worker
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

_DEADLY = 0.15


async def main(seed: int) -> None:
    dice = random.Random(seed)

    async def die_or_commit(connection: Connection, run: ActionRun, step: int, outcome: Outcome) -> bool:
        if run.node(step).kind == "publish" and dice.random() < _DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        return await commit_outcome(connection, run, step, outcome)

    setattr(performer, "commit_outcome", die_or_commit)  # noqa: B010
    async with running(Service("worker", Worker(Settings()).run)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
