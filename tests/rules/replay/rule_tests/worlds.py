"""Simulated instances, and their logs in minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rules.documents.load import load_text
from rules.replay.rule_tests import World

START = datetime(2026, 3, 27, 12, 0, tzinfo=UTC)


def simulate(text: str, start: datetime = START) -> World:
    return World((document.model for document in load_text(text, anchor=start).documents), start)


def minutes(number: float) -> datetime:
    return START + timedelta(minutes=number)


def logged(world: World, kind: str) -> list[tuple[float, str, str]]:
    return [
        ((entry.at - world.start).total_seconds() / 60, entry.name, entry.state)
        for entry in world.log
        if entry.kind == kind
    ]


def give(world: World, *values: tuple[float, str, float], key: str = "temp", **labels: str) -> None:
    """Values of owners, each with its minute."""
    for minute, owner, value in values:
        world.at(minutes(minute), "arrive", owner=owner, key=key, value=value, labels=labels)
