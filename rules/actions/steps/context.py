"""Servers and settings that a step reaches out with."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from nats.aio.client import Client

from rules.delivery.egress import Egress
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


class Sessions(Protocol):
    """Sessions of Postgres, each for the length of a block."""

    def __call__(self) -> AbstractAsyncContextManager[Connection]: ...


@dataclass(frozen=True)
class StepContext:
    settings: Settings
    bus: Client
    sessions: Sessions
    egress: Egress
