"""`tocsin apply`: adds and changes documents, and with `--prune` removes the others, in one
transaction.

Guarantees: nothing is removed without `--prune` and a confirmation (at the prompt, or by `--yes`).
If any file has a problem, all problems are listed and nothing changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tocsin.cli.confirm import confirm
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, current_user
from tocsin.cli.output import print_json, print_table, utc_text
from tocsin.cli.rules.files import Files, Prune, print_warnings, warnings_json
from tocsin.core.errors import Refused

if TYPE_CHECKING:
    from rules.apply import ApplyResult, Preview
    from rules.documents.load import LoadedDocuments, RuleProblem
    from tocsin.core.db import Connection

_MAX_LISTED = 5


class Author(NamedTuple):
    """Who applies, and through what: the API runs this command for its callers."""

    name: str
    via: str


def apply(
    files: Files,
    prune: Prune = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
    large: Annotated[
        bool,
        typer.Option(
            "--large", help="Apply even if so many alarms change that datapoints wait for several seconds."
        ),
    ] = False,
    created_by: CreatedBy = None,
    created_via: Annotated[str, typer.Option("--created-via", hidden=True)] = "cli",
    as_json: Json = False,
) -> None:
    """Apply rule files: all of them, or nothing.

    Documents that were applied before and are not in the files stay, unless --prune is given.

    \b
    Examples:
      tocsin apply examples/quickstart.yaml
      tocsin apply rules/ --prune
    """
    who = Author(created_by or current_user(), created_via)
    warnings: Sequence[RuleProblem]
    if prune:
        loaded, preview = run_command(_preview(files))
        if preview.plan.removed and not yes:
            _confirm_removal(preview, as_json)
        applied, warnings = run_command(_apply_pruning(loaded, preview, who, large)), loaded.warnings
    else:
        applied, warnings = run_command(_apply(files, who, large))
    if as_json:
        print_json({**_applied_json(applied), "warnings": warnings_json(warnings)})
        return
    print_warnings(warnings)
    if applied.plan.effective:
        print_table(("OUTCOME", "KIND", "NAME", "NEXT FIRE"), map(_row, _changes(applied)))
    for count, label in ((applied.resolved, "alarms resolved"), (applied.cancelled, "actions cancelled")):
        if count:
            typer.echo(f"{label}: {count}")
    typer.echo(f"applied at seq {applied.seq}" if applied.seq else "nothing changed")


async def apply_files(connection: Connection, files: Sequence[Path], who: str, via: str) -> ApplyResult:
    """Apply without removing anything, for `tocsin up`."""
    from rules.apply import apply as apply_loaded
    from tocsin.cli.rules.files import load
    from tocsin.core.audit import acting

    actor = await acting(connection, who, via)
    loaded, _ = await load(connection, files, prune=False)
    return await apply_loaded(connection, loaded, actor)


def _changes(applied: ApplyResult) -> list[dict[str, Any]]:
    return [
        {
            "kind": change.kind,
            "name": change.name,
            "outcome": change.outcome,
            "next_at": applied.next_at.get(change.key),
        }
        for change in applied.plan.effective
    ]


def _row(change: dict[str, Any]) -> tuple[str, ...]:
    next_at = utc_text(change["next_at"]) if change["next_at"] else ""
    return change["outcome"], change["kind"], change["name"], next_at


def _applied_json(applied: ApplyResult) -> dict[str, Any]:
    return {
        "seq": applied.seq,
        "changes": _changes(applied),
        "counts": applied.plan.counts(),
        "resolved": applied.resolved,
        "cancelled": applied.cancelled,
    }


async def _apply(
    files: Sequence[Path], who: Author, large: bool
) -> tuple[ApplyResult, Sequence[RuleProblem]]:
    from rules.apply import apply as apply_loaded
    from tocsin.cli.access import require
    from tocsin.cli.rules.files import load
    from tocsin.cli.session import database
    from tocsin.core.audit import acting
    from tocsin.policy import Operation

    async with database() as connection:
        await require(connection, Operation.APPLY_RULES)
        actor = await acting(connection, who.name, who.via)
        loaded, _ = await load(connection, files, prune=False)
        applied = await apply_loaded(connection, loaded, actor, large=large, progress=_progress_printer())
        return applied, loaded.warnings


async def _preview(files: Sequence[Path]) -> tuple[LoadedDocuments, Preview]:
    from rules.apply import preview
    from tocsin.cli.rules.files import load
    from tocsin.cli.session import database

    async with database() as connection:
        loaded, now = await load(connection, files, prune=True)
        return loaded, await preview(connection, loaded, now, prune=True)


async def _apply_pruning(loaded: LoadedDocuments, preview: Preview, who: Author, large: bool) -> ApplyResult:
    """Apply, and remove the documents that the preview showed.

    The apply is refused if the rules have changed since the preview.
    """
    from rules.apply import apply as apply_loaded
    from tocsin.cli.access import require
    from tocsin.cli.session import database
    from tocsin.core.audit import acting
    from tocsin.policy import Operation

    async with database() as connection:
        await require(connection, Operation.APPLY_RULES)
        actor = await acting(connection, who.name, who.via)
        return await apply_loaded(
            connection,
            loaded,
            actor,
            removing=preview.plan.removed,
            large=large,
            progress=_progress_printer(),
        )


def _progress_printer() -> Callable[[int, int], None]:
    """A progress callback that prints a line on stderr after each 10 % of the overdue staleness checks,
    which an apply has to finish first."""
    last_tenth = -1

    def report(done: int, total: int) -> None:
        nonlocal last_tenth
        if done * 10 // total > last_tenth:
            last_tenth = done * 10 // total
            typer.echo(f"processing overdue staleness checks: {done:,} of {total:,}", err=True)

    return report


def _confirm_removal(preview: Preview, as_json: bool) -> None:
    """Ask before documents are removed. Without a terminal the apply is refused.

    Another apply does not undo a removal, because alarms resolve and actions are cancelled.
    """
    from tocsin.cli.rules.plan_text import plan_lines

    removed = sorted(preview.plan.removed)
    if as_json or not _is_terminal():
        listed = ", ".join(f"{kind} {name}" for kind, name in removed[:_MAX_LISTED])
        more = f" and {len(removed) - _MAX_LISTED} more" if len(removed) > _MAX_LISTED else ""
        raise Refused(
            f"this would remove {listed}{more}", remedy="look at `tocsin plan --prune`, then add --yes"
        )
    for line in plan_lines(preview):
        typer.echo(line)
    confirm("apply this?")


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
