"""`tocsin audit`: shows who changed which schedule, document or alarm, and what the change was.
Reads only."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import compact, print_json, print_table, title, utc_text


def audit(
    name: Annotated[
        str | None, typer.Argument(help="Name of a schedule, a document or a rule; all by default.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most this many.")] = 50,
    as_json: Json = False,
) -> None:
    """Show the changes that people and services made, the newest last.

    \b
    Example:
      tocsin audit daily-digest
    """
    rows = run_command(_audit(name, limit))
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo(f"no changes of {name!r} are recorded" if name else "no changes are recorded")
        return
    print_table(
        ("AT", "WHO", "VIA", "VERB", "OBJECT", "CHANGE"),
        (
            (
                utc_text(row["at"]),
                row["who"],
                row["via"],
                row["verb"],
                f"{row['kind']} {title(row['owner'], row['name'])}",
                changes(row["old"], row["new"]),
            )
            for row in rows
        ),
    )


def changes(old: dict[str, Any] | None, new: dict[str, Any] | None) -> str:
    """`status active -> paused`; empty for something new or removed, which the verb tells."""
    if old is None or new is None:
        return ""
    return ", ".join(
        f"{key} {compact(old.get(key))} -> {compact(new.get(key))}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    )


async def _audit(name: str | None, limit: int) -> list[dict[str, Any]]:
    from tocsin.cli.session import database
    from tocsin.core.db import fetch_dicts

    async with database() as connection:
        rows = await fetch_dicts(connection, "tocsin.cli/list_audit", {"name": name, "limit": limit})
        return list(reversed(rows))
