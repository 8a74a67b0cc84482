"""Steps performed without a service, on one session and one connection to NATS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from nats.aio.client import Client

from rules.actions.steps import perform
from rules.actions.steps.context import StepContext
from rules.actions.steps.due_step import DueStep
from rules.delivery.egress import Egress
from rules.runbook import Outcome
from tocsin.core.allow_list import AllowList
from tocsin.core.db import Connection
from tocsin.core.settings import Settings, read_settings


@cache
def _system_egress() -> Egress:
    """Made once: reading the system's authorities takes a tenth of a second."""
    return Egress.from_settings(read_settings())


def egress_of(settings: Settings) -> Egress:
    return replace(_system_egress(), allow_list=AllowList.parse(settings.egress_allow))


def step_context(settings: Settings, connection: Connection, bus: Client) -> StepContext:
    turn = asyncio.Lock()

    @asynccontextmanager
    async def session() -> AsyncIterator[Connection]:
        async with turn:
            yield connection

    return StepContext(settings, bus, session, egress_of(settings))


def after_the_effect(
    monkeypatch: pytest.MonkeyPatch, kind: str, meanwhile: Callable[[], Awaitable[Any]]
) -> None:
    """Run `meanwhile` once, between the effect of a step of this kind and the commit of its
    outcome."""
    left = [meanwhile]

    async def slow(step: DueStep, context: StepContext) -> Outcome:
        outcome = await perform(step, context)
        if step.kind == kind and left:
            await left.pop()()
        return outcome

    monkeypatch.setattr("rules.actions.performer.perform", slow)
