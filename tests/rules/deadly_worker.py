"""A worker in a process of its own that dies over certain messages, as by a crash inside a library.

`python -m tests.rules.deadly_worker`, with the settings in the environment. It dies when it plans a
datapoint of the owner `deadly`, and when it performs a step of the action `deadly`.
"""

from __future__ import annotations

import asyncio
import os
import signal

from rules.actions import performer
from rules.actions.steps import perform
from rules.actions.steps.context import StepContext
from rules.actions.steps.due_step import DueStep
from rules.lanes.data_lane import ParsedBatch
from rules.lanes.lane import LaneMessage
from rules.runbook import Outcome
from rules.worker import Worker
from tests.faults.traps import die_with_the_parent
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DeadlyBatch(ParsedBatch):
    def add(self, message: LaneMessage) -> None:
        if ".deadly." in message.subject:
            _die()
        super().add(message)


async def perform_or_die(step: DueStep, context: StepContext) -> Outcome:
    if step.run.name == "deadly":
        _die()
    return await perform(step, context)


async def main() -> None:
    setattr(performer, "perform", perform_or_die)  # noqa: B010
    from rules.lanes import data_lane

    setattr(data_lane, "ParsedBatch", DeadlyBatch)  # noqa: B010
    async with running(Service("worker", Worker(Settings()).run)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    die_with_the_parent()
    asyncio.run(main())
