"""Patient sessions for all tests of rules: a stalled machine must not lose one."""

from tests.sessions import connection, sessions, watch

__all__ = ["connection", "sessions", "watch"]
