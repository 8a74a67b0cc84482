"""The connections and settings that a step needs."""

from __future__ import annotations

from collections import defaultdict
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from nats.aio.client import Client

from rules.delivery.egress import Egress
from rules.delivery.secret_store import SecretStore
from rules.delivery.secrets import Secrets
from rules.delivery.target_limits import TargetLimits
from rules.suppression.reader import Suppressions
from tocsin.core.breaker import Breaker
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


class OpenSession(Protocol):
    """Opens a Postgres session for the length of a block: `async with open_session() as connection`."""

    def __call__(self) -> AbstractAsyncContextManager[Connection]: ...


@dataclass(frozen=True)
class StepContext:
    """The settings and connections that every step may use.

    The performer creates it once it is connected, and all steps share it.
    """

    settings: Settings
    nats: Client
    open_session: OpenSession
    egress: Egress
    suppressions: Suppressions = field(default_factory=Suppressions)
    breakers: defaultdict[str, Breaker] = field(default_factory=lambda: defaultdict(Breaker))
    """One for each kind of step: the success of one kind proves nothing about another."""
    target_limits: TargetLimits = field(init=False)

    def __post_init__(self) -> None:
        # Half of the places are left for other targets, however few a worker has.
        most = max(1, self.settings.worker_concurrency // 2)
        limits = TargetLimits(min(self.settings.target_concurrency, most))
        object.__setattr__(self, "target_limits", limits)

    def secrets(self, channel: str = "") -> Secrets:
        """The secrets for one delivery. `channel` is empty for a step with a target of its own."""
        return Secrets(SecretStore.from_settings(self.settings), channel)
