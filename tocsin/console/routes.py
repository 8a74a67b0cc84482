"""The routes of the console, one group. To add a screen, add its routes here and to `frame.NAVIGATION`."""

from __future__ import annotations

from tocsin.api.route_group import RouteGroup
from tocsin.console import static_files
from tocsin.console.pages import alarm, alarms, editor, find, many_alarms, now, preferences, rules

CONSOLE = RouteGroup(
    "console",
    routes=(
        *now.ROUTES,
        *alarms.ROUTES,
        *many_alarms.ROUTES,
        *alarm.ROUTES,
        *rules.ROUTES,
        *editor.ROUTES,
        *find.ROUTES,
        *preferences.ROUTES,
        *static_files.ROUTES,
    ),
)
