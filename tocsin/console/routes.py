"""The routes of the console, one group. To add a screen, add its routes here and to `frame.NAVIGATION`.

A route with a name comes before the one with an id in its place: the first that fits is taken.
"""

from __future__ import annotations

from tocsin.api.route_group import RouteGroup
from tocsin.console import static_files
from tocsin.console.pages import (
    alarm,
    alarms,
    calendar,
    dead_letters,
    document_forms,
    editor,
    explain,
    find,
    instance,
    many_alarms,
    now,
    preferences,
    records,
    rule_history,
    rules,
    runs,
    schedule,
    schedules,
    series,
    silences,
    systems,
)

CONSOLE = RouteGroup(
    "console",
    routes=(
        *now.ROUTES,
        *alarms.ROUTES,
        *many_alarms.ROUTES,
        *alarm.ROUTES,
        *silences.ROUTES,
        *schedules.ROUTES,
        *schedule.ROUTES,
        *calendar.ROUTES,
        *explain.ROUTES,
        *series.ROUTES,
        *systems.ROUTES,
        *records.ROUTES,
        *runs.ROUTES,
        *dead_letters.ROUTES,
        *document_forms.ROUTES,
        *rules.ROUTES,
        *rule_history.ROUTES,
        *editor.ROUTES,
        *instance.ROUTES,
        *find.ROUTES,
        *preferences.ROUTES,
        *static_files.ROUTES,
    ),
)
