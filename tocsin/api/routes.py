"""All groups of routes. To add the routes of a package, add its group here."""

from __future__ import annotations

from tocsin.api import health, reference
from tocsin.api.live import routes as live
from tocsin.api.protocols import alertmanager, alertmanager_silences, cloudevents, metrics
from tocsin.api.route_group import RouteGroup
from tocsin.api.v1 import me, tokens

GROUPS: tuple[RouteGroup, ...] = (
    live.GROUP,
    RouteGroup("health", routes=health.ROUTES),
    RouteGroup("reference", routes=reference.ROUTES),
    RouteGroup("me", router=me.router),
    RouteGroup("tokens", router=tokens.router),
    RouteGroup(metrics.GROUP, routes=metrics.ROUTES, lifespan=metrics.open_parts),
    RouteGroup("alertmanager", routes=(*alertmanager.ROUTES, *alertmanager_silences.ROUTES)),
    RouteGroup("cloudevents", routes=cloudevents.ROUTES),
)
