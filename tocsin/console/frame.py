"""The frame of every page: the navigation, the open alarms, and whether checks are held."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from tocsin.api.access.permission import Access
from tocsin.api.live.door import door_of
from tocsin.core.db import fetch_dict, fetch_value
from tocsin.policy import Operation

MOST_COUNTED = 10_000


class NavigationLink(NamedTuple):
    path: str
    name: str
    operation: Operation
    key: str = ""
    """Second key of its shortcut, after `g`."""


NAVIGATION: tuple[tuple[str, tuple[NavigationLink, ...]], ...] = (
    (
        "",
        (
            NavigationLink("/", "Now", Operation.VIEW_ALARMS, "n"),
            NavigationLink("/alarms", "Alarms", Operation.VIEW_ALARMS, "a"),
            NavigationLink("/silences", "Silences", Operation.VIEW_RULES, "q"),
        ),
    ),
    (
        "Time",
        (
            NavigationLink("/schedules", "Schedules", Operation.VIEW_SCHEDULES, "s"),
            NavigationLink("/calendar", "Calendar", Operation.VIEW_SCHEDULES, "c"),
            NavigationLink("/explain", "Explain", Operation.VIEW_SCHEDULES, "e"),
            NavigationLink("/heartbeats", "Heartbeats", Operation.VIEW_SERIES, "b"),
        ),
    ),
    (
        "Data",
        (
            NavigationLink("/series", "Series", Operation.VIEW_SERIES, "d"),
            NavigationLink("/systems", "Systems", Operation.VIEW_HEALTH, "y"),
            NavigationLink("/records", "Records", Operation.VIEW_EVENTS, "r"),
        ),
    ),
    (
        "Reaction",
        (
            NavigationLink("/actions", "Actions", Operation.VIEW_ACTIONS, "x"),
            NavigationLink("/notifications", "Notifications", Operation.VIEW_ALARMS, "o"),
            NavigationLink("/dead-letters", "Dead letters", Operation.VIEW_DEAD_LETTERS, "l"),
        ),
    ),
    (
        "Set-up",
        (
            NavigationLink("/rules", "Rules", Operation.VIEW_RULES, "u"),
            NavigationLink("/channels", "Channels", Operation.VIEW_RULES, "h"),
            NavigationLink("/tocsin", "Tocsin", Operation.VIEW_HEALTH, "t"),
            NavigationLink("/audit", "Audit", Operation.VIEW_AUDIT, "i"),
            NavigationLink("/tokens", "Tokens", Operation.MANAGE_TOKENS, "k"),
        ),
    ),
)


@dataclass(frozen=True)
class Frame:
    path: str
    groups: tuple[tuple[str, tuple[NavigationLink, ...]], ...] = ()
    open_alarms: int | None = None
    """None if the caller may view none. `MOST_COUNTED` stands for more."""
    held: int = 0
    held_for: timedelta | None = None
    """How long checks wait already because the pipeline is behind."""
    position: int = 0
    """Seq of a record that was there before the page was read: live updates continue after it."""

    @property
    def section(self) -> str:
        """The path of the navigation that this page belongs to."""
        return "/" + self.path.split("/")[1]


async def read_frame(access: Access, path: str) -> Frame:
    """What the caller may see of it; on a session of `access`."""
    assert access.lent is not None
    position = door_of(access.context).feed.last
    groups = tuple(
        (title, tuple(link for link in links if access.owners_of(link.operation)))
        for title, links in NAVIGATION
    )
    owners = access.owners_of(Operation.VIEW_ALARMS)
    open_alarms = None
    if owners:
        parameters = {"owners": owners, "most": MOST_COUNTED}
        open_alarms = await fetch_value(access.lent, "tocsin.console/count_open_alarms", parameters)
    pipeline = await fetch_dict(access.lent, "tocsin.console/read_pipeline", {"most": MOST_COUNTED})
    assert pipeline is not None
    return Frame(
        path,
        tuple(group for group in groups if group[1]),
        open_alarms,
        pipeline["held"],
        pipeline["held_for"],
        position,
    )
