"""Draws the live view of `tocsin up`: services and servers, the next fires and the open alarms.

`Feed` reads the database and updates a `ViewState`; `Screen` shows the view. Pure: no I/O.

Records are lines above the view, so that they scroll into the history of the terminal.
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

from rules.alarms.notifications import FailingNotifications
from timers.coming_fires import ComingFire
from tocsin.cli.output import due_text, local_text, printable, shortened, since_text, title
from tocsin.cli.up.lines import Line

_COLOURS = {
    "fired": "green",
    "missed": "yellow",
    "alarm": "bold red",
    "stale": "yellow",
    "fresh": "green",
    "health": "yellow",
    "action": "cyan",
    "failed": "red",
    "event": "dim",
}
_MAX_ERROR_LENGTH = 160
MAX_SHOWN_FIRES = 5
_MAX_SHOWN_ALARMS = 5


class ShownAlarm(NamedTuple):
    severity: str
    name: str
    since: datetime
    message: str
    is_handled: bool
    """Acknowledged or snoozed."""


class Restarts(NamedTuple):
    """The restarts of a service."""

    times: int
    last_error: str
    is_running_again: bool = False


@dataclass
class ViewState:
    """What the view shows. `Feed` updates it; `now` is None until the first read."""

    version: str
    postgres: str
    nats: str
    data: str
    log: str
    api: str = ""
    """Address of the API; empty if none is served."""
    now: datetime | None = None
    coming_fires: Sequence[ComingFire] = ()
    paused_schedules: int = 0
    alarms: Sequence[ShownAlarm] = ()
    """Open alarms, the most severe first."""
    undelivered: str = ""
    """Notifications that cannot be delivered and dead actions, in words; empty if there are none."""
    restarts: dict[str, Restarts] = field(default_factory=dict)
    """The restarts of each service, by its name."""


def view(state: ViewState) -> RenderableType:
    return Panel(
        Group(_addresses(state), Text(), _coming(state), *_alarms(state), *_undelivered(state)),
        title=f"tocsin {state.version}",
        title_align="left",
        subtitle="Ctrl-C stops everything",
        subtitle_align="right",
        border_style="blue",
    )


def line_text(line: Line) -> Text:
    text = Text(f"{line.kind:<6}", style="green" if line.is_resolved else _COLOURS[line.kind])
    return text.append(f"  {line.text}", style="").append(f"  seq {line.seq}", style="dim")


def restarts_text(state: ViewState) -> str:
    """The restarts of each service.

    The last error is included, shortened, until the service runs again. The log file has the whole
    error.
    """
    return "; ".join(_service_restarts_text(name, restarts) for name, restarts in state.restarts.items())


def _service_restarts_text(name: str, restarts: Restarts) -> str:
    text = f"{name} restarted {restarts.times} {'time' if restarts.times == 1 else 'times'}"
    if restarts.is_running_again:
        return text
    return f"{text}: {shortened(restarts.last_error, _MAX_ERROR_LENGTH)}"


def services_text(state: ViewState) -> str:
    return "clock, cdc, worker and api" if state.api else "clock, cdc and worker"


def address_rows(state: ViewState) -> list[tuple[str, str]]:
    """The addresses and places, by their names."""
    api = [("api", state.api)] if state.api else []
    servers = [("postgres", state.postgres), ("nats", state.nats)]
    return [*servers, *api, ("data", state.data), ("log", state.log)]


def _addresses(state: ViewState) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    services = services_text(state)
    if state.restarts:
        services += f" ({restarts_text(state)})"
    for name, value in (("running", services), *address_rows(state)):
        grid.add_row(name, Text(printable(value)))
    return grid


def _alarms(state: ViewState) -> Iterator[RenderableType]:
    if state.now is None or not state.alarms:
        return
    table = Table.grid(padding=(0, 2))
    for style in ("red", "bold", "dim", ""):
        table.add_column(style=style, no_wrap=True, overflow="ellipsis")
    for alarm in state.alarms[:_MAX_SHOWN_ALARMS]:
        table.add_row(
            Text(alarm.severity),
            Text(printable(alarm.name)),
            since_text(alarm.since, state.now),
            Text(printable(alarm.message)),
            style="dim" if alarm.is_handled else "",
        )
    yield from (Text(), table)
    if len(state.alarms) > _MAX_SHOWN_ALARMS:
        more = len(state.alarms) - _MAX_SHOWN_ALARMS
        yield Text(f"and {more} more: `tocsin alarms` lists them", style="dim")


def _undelivered(state: ViewState) -> Iterator[RenderableType]:
    if state.undelivered:
        yield from (Text(), Text(printable(state.undelivered), style="bold red"))


def undelivered_text(failing: FailingNotifications, dead_runs: int) -> str:
    """What did not reach its receiver; `tocsin doctor` has the same."""
    texts = []
    if failing.failing:
        texts.append(
            f"{failing.failing:,} notifications cannot be delivered ({failing.channel_text}):"
            " `tocsin notifications --state failing`"
        )
    if dead_runs:
        texts.append(f"{dead_runs:,} actions died within the last day: `tocsin actions --state dead`")
    return "\n".join(texts)


def _coming(state: ViewState) -> RenderableType:
    if state.now is None:
        return Text("reading the schedules ...", style="dim")
    if not (state.coming_fires or state.paused_schedules):
        return Text(
            "no fires are scheduled: add a schedule with `tocsin schedule add` or `tocsin apply`", style="dim"
        )
    table = Table.grid(padding=(0, 2))
    for style in ("bold", "", "green", "yellow"):
        table.add_column(style=style, no_wrap=style == "green")
    for fire in state.coming_fires[:MAX_SHOWN_FIRES]:
        table.add_row(
            Text(printable(title(fire.owner, fire.schedule))),
            Text(local_text(fire.at, fire.tz)),
            due_text(fire.fire_at - state.now),
            Text(printable(fire.note)),
        )
    if state.paused_schedules:
        table.add_row(Text(f"{state.paused_schedules} paused", style="dim"))
    return table
