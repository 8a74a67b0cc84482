"""Patient sessions for all tests of timers."""

from tests.sessions import connection, sessions, watch

__all__ = ["connection", "sessions", "watch"]
