"""Refuses to run if another installed distribution claims one of our import names.

Guarantee: after `refuse_shadowed_names`, `import clock` and the others import our packages, as far
as the metadata of the installed distributions can tell.

Why: our packages have plain names (`clock`, `rules`, `schemas`). Two distributions that install the
same top-level name overwrite each other's files, and the result is neither of the two programs. The
check reads the metadata of every distribution, 0.1 s or more, so only long-running commands do it
(`up`, `run`, `doctor`).

On failure: `Refused`, with the name and the distributions that claim it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import packages_distributions

from tocsin.core.errors import Refused

OURS = "tocsin"
IMPORT_NAMES = ("tocsin", "clock", "timers", "cdc", "rules", "schemas", "migrations")


def refuse_shadowed_names(claims: Mapping[str, Sequence[str]] | None = None) -> None:
    """`claims` maps each import name to its distributions; by default, those installed here."""
    claims = packages_distributions() if claims is None else claims
    for name in IMPORT_NAMES:
        others = sorted({other for other in claims.get(name, ()) if other.lower() != OURS})
        if others:
            raise Refused(
                f"the import name {name!r} of tocsin is also claimed by {', '.join(map(repr, others))}",
                remedy="install tocsin into an environment of its own",
            )
