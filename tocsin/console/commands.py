"""The commands of the command line that do what a page does: people copy them into scripts and runbooks. Pure."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Sequence

_MOST_IDS = 6


def command_line(*words: str) -> str:
    """`tocsin` with words that a shell reads as they are."""
    return shlex.join(("tocsin", *words))


def alarms_command(
    verb: str,
    ids: Sequence[uuid.UUID],
    where: str = "",
    *,
    before: Sequence[str] = (),
    options: Sequence[str] = (),
) -> str:
    """`tocsin ack 3fa2c11d --note "..."`, for several alarms or a matcher."""
    named = [str(id)[:8] for id in ids[:_MOST_IDS]] + (["..."] if len(ids) > _MOST_IDS else [])
    chosen = [] if where else named
    return command_line(verb, *chosen, *before, *(("--where", where) if where else ()), *options)


def with_note(note: str) -> tuple[str, ...]:
    return ("--note", note) if note else ()
