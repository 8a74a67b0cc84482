"""All groups of routes. To add the routes of a package, add its group here."""

from __future__ import annotations

from tocsin.api import acknowledge, health, login, reference
from tocsin.api.live import routes as live
from tocsin.api.protocols import (
    alertmanager,
    alertmanager_silences,
    calendar_feed,
    cloudevents,
    metrics,
    pings,
)
from tocsin.api.route_group import RouteGroup
from tocsin.api.rule_files import routes as rule_files
from tocsin.api.v1 import (
    actions,
    alarms,
    audit,
    calendars,
    dead_letters,
    events,
    explanations,
    heartbeats,
    instance,
    many_alarms,
    me,
    rules,
    schedule_commands,
    schedules,
    series,
    sessions,
    silences,
    tokens,
    upcoming,
)

GROUPS: tuple[RouteGroup, ...] = (
    live.GROUP,
    rule_files.GROUP,
    RouteGroup("health", routes=health.ROUTES),
    RouteGroup("reference", routes=reference.ROUTES),
    RouteGroup("login", routes=login.ROUTES),
    RouteGroup("acknowledge", routes=acknowledge.ROUTES),
    RouteGroup("many alarms", router=many_alarms.router),
    RouteGroup("alarms", router=alarms.router),
    RouteGroup("silences", router=silences.router),
    RouteGroup("schedule commands", router=schedule_commands.router),
    RouteGroup("schedules", router=schedules.router),
    RouteGroup("events", router=events.router),
    RouteGroup("series", router=series.router),
    RouteGroup("actions", router=actions.router),
    RouteGroup("dead letters", router=dead_letters.router),
    RouteGroup("heartbeats", router=heartbeats.router),
    RouteGroup("calendars", router=calendars.router),
    RouteGroup("upcoming", router=upcoming.router),
    RouteGroup("explanations", router=explanations.router),
    RouteGroup("rules", router=rules.router),
    RouteGroup("instance", router=instance.router),
    RouteGroup("audit", router=audit.router),
    RouteGroup("sessions", router=sessions.router),
    RouteGroup("me", router=me.router),
    RouteGroup("tokens", router=tokens.router),
    RouteGroup(metrics.GROUP, routes=metrics.ROUTES, lifespan=metrics.open_parts),
    RouteGroup("alertmanager", routes=(*alertmanager.ROUTES, *alertmanager_silences.ROUTES)),
    RouteGroup("cloudevents", routes=cloudevents.ROUTES),
    RouteGroup("calendar-feed", routes=calendar_feed.ROUTES),
    RouteGroup(pings.GROUP, routes=pings.ROUTES, lifespan=pings.open_parts),
)
