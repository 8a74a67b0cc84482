"""The routes of the console, one group. To add a screen, add its routes here and to `frame.NAVIGATION`."""

from __future__ import annotations

from tocsin.api.route_group import RouteGroup
from tocsin.console import static_files
from tocsin.console.pages import alarm, alarms, find, many_alarms, now, preferences

CONSOLE = RouteGroup(
    "console",
    routes=(
        *now.ROUTES,
        *alarms.ROUTES,
        *many_alarms.ROUTES,
        *alarm.ROUTES,
        *find.ROUTES,
        *preferences.ROUTES,
        *static_files.ROUTES,
    ),
)
