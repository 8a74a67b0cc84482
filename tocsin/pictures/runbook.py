"""A run of a runbook as a branching timeline: its steps from top to bottom, branches to the right.

A step that was not taken is drawn with an outline. Requests and answers are in the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from markupsafe import Markup

from tocsin.pictures.figure import Picture
from tocsin.pictures.svg import drawing, element, shorten, text
from tocsin.pictures.tones import Tone

StepState = Literal["done", "failed", "running", "waiting", "pending", "skipped"]
MOST_STEPS = 100
DEEPEST = 6
WIDTH = 960.0
_ROW = 44.0
_COLUMN = 26.0
_TIMES = 250.0
_LONGEST_CELL = 2_000
_TONES: dict[StepState, Tone] = {
    "done": "ok",
    "failed": "missed",
    "running": "open",
    "waiting": "pending",
    "pending": "muted",
    "skipped": "muted",
}


@dataclass(frozen=True)
class RunStep:
    name: str
    state: StepState
    kind: str = ""
    """What it does, such as `webhook`."""
    depth: int = 0
    """The branch that it is on: 0 for the main line."""
    at: datetime | None = None
    took: str = ""
    detail: str = ""
    """One line: the outcome, the reason, what it waits for."""
    attempts: int = 0
    request: str = ""
    answer: str = ""


def runbook_timeline(steps: Sequence[RunStep], zone: ZoneInfo, *, title: str) -> Picture:
    shown = steps[:MOST_STEPS]
    left = len(steps) - len(shown)
    parts = _draw_rails(shown)
    for place, step in enumerate(shown):
        parts += _draw_step(step, place, zone)
    height = _ROW * max(len(shown), 1) + (18 if left else 0) + 4
    if not shown:
        parts.append(text(8, 26, "no step yet", "pic-quiet"))
    if left:
        parts.append(text(8, height - 6, f"and {left:,} more", "pic-quiet"))
    states = ", ".join(f"{step.name} {step.state}" for step in shown[:20])
    svg = drawing(WIDTH, height, parts, title=title, description=shorten(states, 2000))
    heads = ("step", "kind", "state", "at", "took", "detail", "request", "answer")
    rows = [
        (
            step.name,
            step.kind,
            f"{step.state}, attempt {step.attempts}" if step.attempts > 1 else step.state,
            _when(step, zone),
            step.took,
            *(text[:_LONGEST_CELL] for text in (step.detail, step.request, step.answer)),
        )
        for step in shown
    ]
    return Picture("runbook", svg, heads, rows, more_rows=left)


def _depth(step: RunStep) -> int:
    return min(max(step.depth, 0), DEEPEST)


def _center(step: RunStep, place: int) -> tuple[float, float]:
    return 16 + _depth(step) * _COLUMN, place * _ROW + _ROW / 2


def _draw_rails(steps: Sequence[RunStep]) -> list[Markup]:
    """A curve from each step to the one that it follows: the last before it on its branch, or a shallower one."""
    parts = []
    for place, step in enumerate(steps):
        before = next((at for at in range(place - 1, -1, -1) if _depth(steps[at]) <= _depth(step)), None)
        if before is None:
            continue
        x1, y1 = _center(steps[before], before)
        x2, y2 = _center(step, place)
        turn = min(y1 + _ROW, y2)
        bend = f"C{x1:.1f} {turn:.1f} {x2:.1f} {y1:.1f} {x2:.1f} {turn:.1f}" if x1 != x2 else ""
        kind = "pic-rail untaken" if step.state in ("skipped", "pending") else "pic-rail"
        parts.append(
            element("path", d=f"M{x1:.1f} {y1:.1f} {bend} L{x2:.1f} {y2:.1f}".replace("  ", " "), class_=kind)
        )
    return parts


def _draw_step(step: RunStep, place: int, zone: ZoneInfo) -> list[Markup]:
    x, y = _center(step, place)
    hollow = "" if step.state not in ("skipped", "pending") else " hollow"
    parts = [element("circle", cx=x, cy=y, r=7, class_=f"pic-node {_TONES[step.state]}{hollow}")]
    parts += _sign(step.state, x, y)
    begins = x + 18
    title = f"{step.name} · {step.kind}" if step.kind else step.name
    quiet = " pic-off" if hollow else ""
    parts.append(text(begins, y - 2, title, f"pic-step{quiet}", within=WIDTH - _TIMES - begins))
    state = f"{step.state} after {step.attempts} attempts" if step.attempts > 1 else step.state
    detail = f"{state}: {step.detail}" if step.detail else state
    parts.append(text(begins, y + 13, detail, f"pic-quiet {_TONES[step.state]}", within=WIDTH - begins - 8))
    when = " · ".join(one for one in (_when(step, zone), step.took) if one)
    parts.append(text(WIDTH - 4, y - 2, when, "pic-tick", anchor="end", within=_TIMES - 8))
    return parts


def _sign(state: StepState, x: float, y: float) -> list[Markup]:
    """What the circle has inside, so that states differ without colours."""
    data = {
        "done": f"M{x - 3:.1f} {y:.1f} L{x - 1:.1f} {y + 2.5:.1f} L{x + 3.2:.1f} {y - 2.5:.1f}",
        "failed": f"M{x - 2.5:.1f} {y - 2.5:.1f} L{x + 2.5:.1f} {y + 2.5:.1f} M{x - 2.5:.1f} {y + 2.5:.1f} "
        f"L{x + 2.5:.1f} {y - 2.5:.1f}",
        "waiting": f"M{x:.1f} {y - 4:.1f} L{x:.1f} {y:.1f} L{x + 3:.1f} {y + 1.5:.1f}",
        "running": f"M{x - 2:.1f} {y - 3.2:.1f} L{x + 3:.1f} {y:.1f} L{x - 2:.1f} {y + 3.2:.1f} Z",
    }.get(state)
    return [element("path", d=data, class_="pic-sign")] if data else []


def _when(step: RunStep, zone: ZoneInfo) -> str:
    return "" if step.at is None else f"{step.at.astimezone(zone):%a %d %b %H:%M:%S %Z}"
