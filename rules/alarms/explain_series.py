"""Explains why a series is fresh or stale, or is not known. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tocsin.core.instant import instant_text


def series_sentence(row: Mapping[str, Any], now: datetime) -> str:
    """`dsp.temperature of 'plant-7' is stale since ...: no datapoint arrived until its deadline`"""
    name = f"{row['key']} of {row['owner']!r}"
    last = f"the last datapoint arrived at {instant_text(row['arrived_at'])}"
    if row["freshness"] == "stale":
        since = instant_text(row["stale_since"])
        return f"{name} is stale since {since}: {last}, and none until its deadline"
    if row["deadline"] is None:
        return f"{name} is fresh: {last}, and its datapoint_type has no interval, so it cannot become stale"
    deadline = instant_text(row["deadline"])
    if row["cause"] is not None:
        return (
            f"{name} is fresh: {last}, and its deadline {deadline} is checked when workers have read so far"
        )
    if row["deadline"] <= now:
        return f"{name} is fresh: {last}; its deadline {deadline} has passed and is checked now"
    return f"{name} is fresh: {last}, and it becomes stale at {deadline} unless another one arrives"
