"""Patient sessions for all tests of the clock."""

from tests.sessions import connection, sessions, watch

__all__ = ["connection", "sessions", "watch"]
