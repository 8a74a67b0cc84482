"""Simulated instances, and their logs in minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rules.documents.load import load_text
from rules.replay.rule_tests import World

START = datetime(2026, 3, 27, 12, 0, tzinfo=UTC)


def world(text: str, start: datetime = START) -> World:
    return World((one.model for one in load_text(text, anchor=start).documents), start)


def minutes(number: float) -> datetime:
    return START + timedelta(minutes=number)


def logged(found: World, kind: str) -> list[tuple[float, str, str]]:
    return [
        ((one.at - found.start).total_seconds() / 60, one.name, one.state)
        for one in found.log
        if one.kind == kind
    ]
