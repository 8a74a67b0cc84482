"""The API on loopback, for the clients that use it."""

from __future__ import annotations

from tests.api.conftest import api

__all__ = ["api"]
