"""One step to be done: the action, the node of its program, and everything its texts may name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from nats.aio.client import Client

from rules.actions.store import Action, Situation
from rules.delivery.egress import Egress
from rules.lanes.lineage import lineage_text
from rules.runbook import Node
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

# What is kept of a text in the log; the rest is in the world already.
LONGEST_KEPT = 4_000


class Sessions(Protocol):
    """Sessions of Postgres, each for the length of a block."""

    def __call__(self) -> AbstractAsyncContextManager[Connection]: ...


@dataclass(frozen=True)
class World:
    """What steps reach out with."""

    settings: Settings
    bus: Client
    sessions: Sessions
    egress: Egress


@dataclass(frozen=True)
class Task:
    action: Action
    node: Node
    situation: Situation
    world: World

    @property
    def entry(self) -> Mapping[str, Any]:
        return self.action.entry(self.node.number)

    @property
    def attempt(self) -> int:
        return int(self.entry["attempt"])

    @property
    def key(self) -> str:
        """The idempotency key: the same for every attempt."""
        return f"{self.action.id}/{self.node.number}"

    @cached_property
    def data(self) -> dict[str, Any]:
        """What templates see."""
        return {
            **self.situation.event,
            "alarm": self.situation.alarm,
            "answers": self.action.answers,
            "events": list(self.situation.events),
            "now": self.action.at,
        }

    @property
    def headers(self) -> dict[str, str]:
        """What travels with every message of ours, so that whoever reacts to it can be told apart from a stranger."""
        return {
            "Tocsin-Idempotency-Key": self.key,
            "Tocsin-Correlation-Id": str(self.action.correlation_id),
            "Tocsin-Lineage": lineage_text(self.action.next_lineage),
        }
