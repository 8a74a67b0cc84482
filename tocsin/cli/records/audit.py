"""`tocsin audit`: who did what to which schedule, document or alarm, via what, and what it changed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json
from tocsin.cli.output import compact, print_json, print_table, title, utc_text


def audit(
    name: Annotated[
        str | None, typer.Argument(help="Name of a schedule or document; all by default.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most this many.")] = 50,
    as_json: Json = False,
) -> None:
    """Show what people and services did, newest last.

    \b
    Example:
      tocsin audit daily-digest
    """
    rows = finish(_audit(name, limit))
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo(f"nothing was done to {name!r}" if name else "nothing was done yet")
        return
    print_table(
        ("AT", "WHO", "VIA", "DID", "TO", "CHANGED"),
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
    """`status active -> paused`; of a new or removed thing, nothing: the verb says it."""
    if old is None or new is None:
        return ""
    return ", ".join(
        f"{key} {compact(old.get(key))} -> {compact(new.get(key))}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    )


async def _audit(name: str | None, limit: int) -> list[dict[str, Any]]:
    from psycopg.rows import dict_row

    from tocsin.cli.session import database
    from tocsin.core.db import statement

    async with database() as connection, connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("tocsin.cli/list_audit"), {"kind": None, "name": name, "limit": limit})
        return list(reversed(await cursor.fetchall()))
