"""The caller of a request: its principal and the credential that proved it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tocsin.policy import Principal


@dataclass(frozen=True)
class Caller:
    principal: Principal
    credential: str
    """`token`, `session` or `proxy`."""
    expires_at: datetime | None = None

    @property
    def name(self) -> str:
        return self.principal.name
