"""Sessions that a stalled machine does not lose."""

from __future__ import annotations

from tests.rules.conftest import connection

__all__ = ["connection"]
