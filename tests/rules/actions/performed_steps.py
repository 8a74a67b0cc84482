"""Steps performed without a service, on one session and one connection to NATS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from typing import Any, cast

import pytest
from nats.aio.client import Client

from rules.actions.steps import PERFORMERS
from rules.actions.steps.task import Task, World
from rules.delivery.egress import Egress
from rules.runbook import Outcome
from tocsin.core.allow_list import AllowList
from tocsin.core.db import Connection
from tocsin.core.settings import Settings, read_settings


@cache
def _trusting() -> Egress:
    """Made once: reading the system's authorities takes a tenth of a second."""
    return Egress.of(read_settings())


def egress_of(settings: Settings) -> Egress:
    return replace(_trusting(), allow=AllowList.parse(settings.egress_allow))


def world_of(settings: Settings, connection: Connection, bus: Client) -> World:
    turn = asyncio.Lock()

    @asynccontextmanager
    async def session() -> AsyncIterator[Connection]:
        async with turn:
            yield connection

    return World(settings, bus, session, egress_of(settings))


def after_the_effect(
    monkeypatch: pytest.MonkeyPatch, kind: str, happens: Callable[[], Awaitable[Any]]
) -> None:
    """Let something happen once, between what a kind of step does and the commit of its outcome."""
    performers = cast(dict[str, Any], PERFORMERS)
    original = performers[kind]

    async def slow(task: Task) -> Outcome:
        done: Outcome = await original(task)
        performers[kind] = original
        await happens()
        return done

    monkeypatch.setitem(performers, kind, slow)
