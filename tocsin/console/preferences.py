"""The choices of a person for this browser: the theme and the zone of times. Kept in cookies, not in the database.

A choice that is not known counts as none: cookies come from the browser.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from starlette.requests import HTTPConnection
from starlette.responses import Response

from timers.recurrence.zones import zone
from tocsin.core.errors import InvalidInput

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "tocsin-theme"
ZONE_COOKIE = "tocsin-zone"
_YEAR_S = 365 * 86_400
_LONGEST_ZONE = 100


@dataclass(frozen=True)
class Preferences:
    theme: str = "auto"
    tz: str = "UTC"
    has_zone: bool = False
    """Whether the browser has a zone already; a script sends that of the machine otherwise."""


def preferences_of(connection: HTTPConnection) -> Preferences:
    theme = connection.cookies.get(THEME_COOKIE, "")
    tz = unquote(connection.cookies.get(ZONE_COOKIE, ""))
    is_zone = _is_zone(tz)
    return Preferences(theme if theme in THEMES else "auto", tz if is_zone else "UTC", is_zone)


def keep_preferences(response: Response, connection: HTTPConnection, theme: str, tz: str) -> None:
    """Set the cookies. `InvalidInput` for a theme or a zone that is not known."""
    if theme not in THEMES:
        raise InvalidInput(f"unknown theme {theme!r}", remedy=f"use {', '.join(THEMES)}")
    zone(tz)
    is_secure = connection.url.scheme == "https"
    for name, value in ((THEME_COOKIE, theme), (ZONE_COOKIE, tz)):
        response.set_cookie(name, value, max_age=_YEAR_S, path="/", samesite="lax", secure=is_secure)


def _is_zone(tz: str) -> bool:
    if not tz or len(tz) > _LONGEST_ZONE:
        return False
    try:
        zone(tz)
    except InvalidInput:
        return False
    return True
