"""`tocsin audit`: shows who changed which schedule, document or alarm, and what the change was.
`tocsin audit verify` checks the chain of these rows. Reads only."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import compact, print_json, print_table, title, utc_text
from tocsin.cli.remote.over_http import over_http
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from tocsin.core.audit_chain import ChainReport


def audit(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Name of a schedule, a document or a rule; all by default.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most this many.")] = 50,
    as_json: Json = False,
) -> None:
    """Show the changes that people and services made, the newest last, or check them.

    \b
    Examples:
      tocsin audit daily-digest
      tocsin audit verify
    """
    if context.invoked_subcommand is not None:
        return
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
                row["who"] if row["claimed"] is None else f"{row['who']} ({row['claimed']})",
                row["via"],
                row["verb"],
                f"{row['kind']} {title(row['owner'], row['name'])}",
                changes(row["old"], row["new"]),
            )
            for row in rows
        ),
    )


def verify(
    head: Annotated[
        str | None,
        typer.Option(
            "--head", help="POSITION:HASH that an earlier check printed, kept outside of the database."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that no row of the audit was changed or removed since it was chained.

    \b
    Example:
      tocsin audit verify
    """
    report = run_command(_verify(None if head is None else _parsed_head(head)))
    if as_json:
        print_json(asdict(report))
    else:
        for problem in report.problems:
            typer.echo(problem)
        if not report.problems:
            typer.echo(
                f"{report.checked} rows are as they were written, {report.unsealed} are not chained yet"
            )
        if report.position:
            typer.echo(f"head {report.position}:{report.hash}")
    if report.problems:
        raise typer.Exit(1)


def _parsed_head(text: str) -> tuple[int, str]:
    position, _, hash_text = text.partition(":")
    if not position.isdecimal() or not re.fullmatch("[0-9a-fA-F]{64}", hash_text):
        raise InvalidInput(
            f"--head {text!r} is not a head", remedy="write POSITION:HASH as the command prints it"
        )
    return int(position), hash_text


def changes(old: dict[str, Any] | None, new: dict[str, Any] | None) -> str:
    """`status active -> paused`; empty for something new or removed, which the verb tells."""
    if old is None or new is None:
        return ""
    return ", ".join(
        f"{key} {compact(old.get(key))} -> {compact(new.get(key))}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    )


@over_http("records.list_audit")
async def _audit(name: str | None, limit: int) -> list[dict[str, Any]]:
    from tocsin.cli.session import database
    from tocsin.core.audit import list_audit

    async with database() as connection:
        return list(reversed(await list_audit(connection, name, limit=limit)))


@over_http("records.verify_audit")
async def _verify(head: tuple[int, str] | None) -> ChainReport:
    from tocsin.cli.session import database
    from tocsin.core.audit_chain import verify_chain

    async with database() as connection:
        return await verify_chain(connection, head)
