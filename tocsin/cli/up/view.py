"""The live view of `up`: what runs where, the next fires with their countdown, and the alarms that are open. A pure
function of `State`.

The fires themselves are lines above the view, so that they scroll away into the terminal's history like any
output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tocsin.cli.output import due_text, local_text, printable, since_text, title
from tocsin.cli.schedules.coming_fires import ComingFire
from tocsin.cli.up.lines import Line

_COLOURS = {
    **{"fired": "green", "missed": "yellow", "alarm": "bold red"},
    **{
        "stale": "yellow",
        "fresh": "green",
        "health": "yellow",
        "action": "cyan",
        "failed": "red",
        "event": "dim",
    },
}
_LONGEST_REASON = 160
SHOWN_FIRES = 8
SHOWN_ALARMS = 8


class HeldAlarm(NamedTuple):
    severity: str
    name: str
    since: datetime
    says: str
    silenced: bool
    """Acknowledged or snoozed: somebody knows."""


class Restarts(NamedTuple):
    times: int
    why: str
    """The last time."""
    over: bool = False
    """It is well again."""


@dataclass
class State:
    version: str
    postgres: str
    nats: str
    data: str
    log: str
    now: datetime | None = None
    coming: Sequence[ComingFire] = ()
    paused: int = 0
    alarms: Sequence[HeldAlarm] = ()
    """The gravest ones that are open."""
    waiting: dict[str, Restarts] = field(default_factory=dict)
    """Services that were started again."""


def view(state: State) -> RenderableType:
    return Panel(
        Group(_places(state), Text(), _coming(state), *_alarms(state)),
        title=f"tocsin {state.version}",
        title_align="left",
        subtitle="Ctrl-C stops everything",
        subtitle_align="right",
        border_style="blue",
    )


def line_text(line: Line) -> Text:
    text = Text(f"{line.kind:<6}", style="green" if line.is_over else _COLOURS[line.kind])
    return text.append(f"  {line.text}", style="").append(f"  seq {line.seq}", style="dim")


def restarts_text(state: State) -> str:
    """The reason in short, while it lasts: the log has the whole of it."""
    return "; ".join(_restarts(name, restarts) for name, restarts in state.waiting.items())


def _restarts(name: str, restarts: Restarts) -> str:
    text = f"{name} started again {restarts.times} {'time' if restarts.times == 1 else 'times'}"
    return text if restarts.over else f"{text}: {_shortened(restarts.why)}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 3]}..."


def _places(state: State) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    services = "clock, cdc and worker"
    if state.waiting:
        services += f" ({restarts_text(state)})"
    for name, value in (
        ("running", services),
        ("postgres", state.postgres),
        ("nats", state.nats),
        ("data", state.data),
        ("log", state.log),
    ):
        grid.add_row(name, Text(printable(value)))
    return grid


def _alarms(state: State) -> Iterator[RenderableType]:
    if state.now is None or not state.alarms:
        return
    table = Table.grid(padding=(0, 2))
    for style in ("red", "bold", "dim", ""):
        table.add_column(style=style, no_wrap=style == "dim")
    for alarm in state.alarms[:SHOWN_ALARMS]:
        table.add_row(
            Text(alarm.severity),
            Text(printable(alarm.name)),
            since_text(alarm.since - state.now),
            Text(printable(alarm.says)),
            style="dim" if alarm.silenced else "",
        )
    if len(state.alarms) > SHOWN_ALARMS:
        table.add_row(Text("and more: `tocsin alarms` lists them", style="dim"))
    yield from (Text(), table)


def _coming(state: State) -> RenderableType:
    if state.now is None or not (state.coming or state.paused):
        return Text(
            "no fires ahead: add a schedule with `tocsin schedule add` or `tocsin apply`", style="dim"
        )
    table = Table.grid(padding=(0, 2))
    for style in ("bold", "", "green", "yellow"):
        table.add_column(style=style, no_wrap=style == "green")
    for fire in state.coming[:SHOWN_FIRES]:
        table.add_row(
            Text(printable(title(fire.owner, fire.schedule))),
            Text(local_text(fire.at, fire.tz)),
            due_text(fire.fire_at - state.now),
            Text(printable(fire.note)),
        )
    if state.paused:
        table.add_row(Text(f"{state.paused} paused", style="dim"))
    return table
