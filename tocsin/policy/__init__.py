"""The one policy: may a principal do an operation, for an owner or for the instance?

Guarantee: `decide` is pure and denies by default. An unknown operation, a principal without grants, and
an owner outside of the patterns of its grants are refused with a reason. The package imports nothing of
Tocsin, so that the command line, the API and the console can all use it.

Postgres enforces its own part again: by the rights of the roles (`migrations.roles.grants`) and by the
owners that are granted to them. `tocsin.owner_matches` has the same patterns; a test compares both.
"""

from tocsin.policy.decision import (
    RULES,
    AccessDecision,
    AccessRole,
    Grant,
    Operation,
    Principal,
    Scope,
    decide,
    matches,
)

__all__ = [
    "RULES",
    "AccessDecision",
    "AccessRole",
    "Grant",
    "Operation",
    "Principal",
    "Scope",
    "decide",
    "matches",
]
