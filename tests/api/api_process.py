"""An API in a process of its own, to be killed: `python -m tests.api.api_process SETTINGS` prints its address."""

from __future__ import annotations

import asyncio
import sys

from tests.api.writing_group import WRITING_GROUPS
from tocsin.api.service import Api, listen
from tocsin.core.settings import Settings


async def main() -> None:
    settings = Settings.model_validate_json(sys.argv[1])
    with listen(settings) as listening:
        api = Api(settings, listening, WRITING_GROUPS)
        print(api.url, flush=True)  # noqa: T201 - the address is the answer
        await api.run()


if __name__ == "__main__":
    asyncio.run(main())
