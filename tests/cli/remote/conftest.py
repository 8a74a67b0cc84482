"""The command line with the database, and the same over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from tests.api.running_api import RunningApi, running_api
from tests.cli.conftest import Answer, CommandLine, alone
from tocsin.core.settings import Settings

__all__ = ["alone", "api", "both"]
_DISTANCE = re.compile(
    r'"(now|age_s)": .*|'
    r"(in )?(\d+[dhms]){1,2}( ago)?|just now|due now|[0-9.]+ m?s"
)


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[RunningApi]:
    async with running_api(settings) as started:
        yield started


class BothWays:
    def __init__(self, local: CommandLine, remote: CommandLine) -> None:
        self._local = local
        self._remote = remote

    async def local(self, *words: str) -> Answer:
        return await asyncio.to_thread(self._local.answer, *words)

    async def remote(self, *words: str) -> Answer:
        return await asyncio.to_thread(self._remote.answer, *words)

    async def compare(self, *words: str) -> Answer:
        """The answer, which is the same both ways but for distances in time and addresses."""
        local, remote = await self.local(*words), await self.remote(*words)
        assert plain(remote) == plain(local), words
        return remote


def plain(answer: Answer) -> tuple[int, list[str], list[str]]:
    return answer.exit_code, _lines(answer.out), _lines(answer.err)


def _lines(text: str) -> list[str]:
    """Without widths of columns, which follow from distances."""
    return [re.sub(r" +|-{2,}", " ", _DISTANCE.sub("~", line)).strip() for line in text.splitlines()]


@pytest.fixture
async def both(api: RunningApi, alone: CommandLine) -> BothWays:
    from tests.cli.conftest import environment_of

    _, token = await api.mint("admin:*", name="ann")
    local = CommandLine({**environment_of(api.settings), "TOCSIN_URL": None, "TOCSIN_TOKEN": None})
    servers = {"TOCSIN_POSTGRES": None, "TOCSIN_NATS": None}
    remote = CommandLine({**servers, "TOCSIN_URL": api.url, "TOCSIN_TOKEN": token, "NO_COLOR": "1"})
    return BothWays(local, remote)
