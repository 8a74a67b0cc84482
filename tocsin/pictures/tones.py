"""The tones of pictures: one class each, whose colours `pictures.css` has."""

from __future__ import annotations

from math import ceil
from typing import Literal

Tone = Literal[
    "ok", "late", "missed", "muted", "pending", "open", "acknowledged", "unknown", "then", "now", "changed",
    "sev1", "sev2", "sev3", "sev4", "sev5",
]  # fmt: skip
# The worst last: what is drawn where several share a pixel.
ORDER: tuple[Tone, ...] = (
    "ok", "then", "now", "muted", "unknown", "pending", "acknowledged", "late", "changed", "sev1", "sev2",
    "sev3", "open", "missed", "sev4", "sev5",
)  # fmt: skip
_MOST = 5


def severity_tone(level: int, levels: int = _MOST) -> Tone:
    """The tone of a severity by its place among all of them, from 1; the highest has the strongest."""
    tones: tuple[Tone, ...] = ("sev1", "sev2", "sev3", "sev4", "sev5")
    place = _MOST if levels <= 1 else 1 + ceil((level - 1) * (_MOST - 1) / (levels - 1))
    return tones[min(max(place, 1), _MOST) - 1]


def worst(first: Tone, second: Tone) -> Tone:
    return max(first, second, key=ORDER.index)
