"""Asks before a change that cannot be undone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tocsin.core.errors import Refused

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def confirm(question: str) -> None:
    """Ask on stderr, because stdout is for the answer. The end of input, as of a pipe, means no.

    Never ask inside an event loop: asyncio would take the first Ctrl-C, and the prompt would stay.
    """
    typer.echo(f"{question} [y/N] ", err=True, nl=False)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("nothing was changed", remedy="answer y, or add --yes")
