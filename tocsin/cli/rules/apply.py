"""`tocsin check`, `plan` and `apply`: rules files, read together, right as a whole or not used at all.

`check` needs no server: what a file names must be among the files. `plan` and `apply` also know what was applied
before. Nothing is removed without `--prune` and somebody's consent. On failure every problem of every file is
listed, one `file:line:column: message` per line, and nothing changes.

Exit codes of `plan --exit-code`: 0 there is nothing to do, 3 there is; 1 and 2 mean failure, as everywhere.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import CreatedBy, Json, person
from tocsin.cli.output import print_json, print_table, utc_text
from tocsin.core.errors import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from rules.apply import Applied, Preview
    from rules.documents.load import Loaded
    from tocsin.core.db import Connection

SOMETHING_TO_DO = 3
_NAMED = 5

Files = Annotated[list[Path], typer.Argument(help="Rules files in YAML, or folders.", metavar="FILES...")]
Prune = Annotated[bool, typer.Option("--prune", help="Remove what was applied and is not in the files.")]


def check(files: Files, as_json: Json = False) -> None:
    """Check rules files without applying them; needs no server.

    \b
    Example:
      tocsin check examples/quickstart.yaml
    """
    from clock.time_source import wall_now
    from rules.documents.load import RulesInvalid, load_files

    try:
        loaded = load_files(files, anchor=wall_now())
    except RulesInvalid as invalid:
        if not as_json:
            raise
        print_json({"ok": False, "problems": [problem._asdict() for problem in invalid.problems]})
        raise typer.Exit(invalid.exit_code) from None
    if as_json:
        print_json({"ok": True, "documents": _counts(loaded)})
    else:
        typer.echo(f"ok: {in_words(loaded)}")


def plan(
    files: Files,
    prune: Prune = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 3 if there is something to do.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what applying rules files would change; writes nothing.

    \b
    Example:
      tocsin plan examples/quickstart.yaml
    """
    from tocsin.cli.rules.render_plan import plan_json, plan_lines

    seen = finish(_preview(files, prune))
    if as_json:
        print_json(plan_json(seen))
    else:
        for line in plan_lines(seen):
            typer.echo(line)
    if exit_code and seen.plan.effective:
        raise typer.Exit(SOMETHING_TO_DO)


def apply(
    files: Files,
    prune: Prune = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
    large: Annotated[bool, typer.Option("--large", help="Even if datapoints have to wait for long.")] = False,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Apply rules files: all of them, or nothing.

    \b
    Examples:
      tocsin apply examples/quickstart.yaml
      tocsin apply rules/ --prune
    """
    applied = finish(_apply(files, by or person(), prune, yes, large, as_json))
    if as_json:
        print_json(_applied_json(applied))
        return
    if applied.plan.effective:
        print_table(("OUTCOME", "KIND", "NAME", "NEXT FIRE"), map(_row, _changes(applied)))
    for count, what in ((applied.resolved, "alarms resolved"), (applied.cancelled, "actions cancelled")):
        if count:
            typer.echo(f"{what}: {count}")
    typer.echo(f"applied at seq {applied.seq}" if applied.seq else "nothing changed")


def _changes(applied: Applied) -> list[dict[str, Any]]:
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


def _applied_json(applied: Applied) -> dict[str, Any]:
    return {
        "seq": applied.seq,
        "changes": _changes(applied),
        "counts": applied.plan.counts(),
        "resolved": applied.resolved,
        "cancelled": applied.cancelled,
    }


async def _preview(files: Sequence[Path], prune: bool) -> Preview:
    from rules.apply import preview
    from tocsin.cli.session import database

    async with database() as connection:
        loaded, now = await _load(connection, files, prune)
        return await preview(connection, loaded, now, prune=prune)


async def _apply(
    files: Sequence[Path], who: str, prune: bool, yes: bool, large: bool, as_json: bool
) -> Applied:
    from rules.apply import apply as apply_loaded
    from rules.apply import preview
    from tocsin.cli.session import database
    from tocsin.core.audit import Actor

    async with database() as connection:
        loaded, now = await _load(connection, files, prune)
        removing = None
        if prune:
            seen = await preview(connection, loaded, now, prune=True)
            if seen.plan.removed and not yes:
                _ask(seen, as_json)
            removing = seen.plan.removed
        actor = Actor(who, "cli", now)
        return await apply_loaded(
            connection, loaded, actor, removing=removing, large=large, tell=_tell_tenths()
        )


def _tell_tenths() -> Callable[[int, int], None]:
    """A line on stderr for each tenth of a backlog."""
    told = -1

    def tell(done: int, total: int) -> None:
        nonlocal told
        if done * 10 // total > told:
            told = done * 10 // total
            typer.echo(f"silences that nobody has come to yet: {done:,} of {total:,} settled", err=True)

    return tell


def _ask(seen: Preview, as_json: bool) -> None:
    """Removing is not undone by another apply alone: alarms resolve and actions are cancelled."""
    from tocsin.cli.rules.render_plan import plan_lines

    if as_json or not _is_a_terminal():
        listed = ", ".join(f"{kind} {name}" for kind, name in sorted(seen.plan.removed)[:_NAMED])
        more = f" and {len(seen.plan.removed) - _NAMED} more" if len(seen.plan.removed) > _NAMED else ""
        raise Refused(
            f"this would remove {listed}{more}", remedy="look at `tocsin plan --prune`, then add --yes"
        )
    for line in plan_lines(seen):
        typer.echo(line)
    if not typer.confirm("apply this?"):
        raise Refused(
            "nothing was applied, because you said no", remedy="change the files, or leave out --prune"
        )


def _is_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


async def apply_files(connection: Connection, files: Sequence[Path], who: str, via: str) -> Applied:
    from rules.apply import apply as apply_loaded
    from tocsin.core.audit import Actor

    loaded, now = await _load(connection, files, prune=False)
    return await apply_loaded(connection, loaded, Actor(who, via, now))


async def _load(connection: Connection, files: Sequence[Path], prune: bool) -> tuple[Loaded, datetime]:
    """What is removed cannot be referred to: with `prune`, everything that a file names must be in the files."""
    from rules.documents.load import load_files
    from rules.documents.rule_book import applied_documents, known_names
    from schemas.documents import DatapointTypeDocument, EventRuleDocument
    from timers.working_set import database_now

    now = await database_now(connection)
    if prune:
        return load_files(files, anchor=now), now
    known = await known_names(connection)
    applied = await applied_documents(connection, DatapointTypeDocument, EventRuleDocument)
    return load_files(files, known=known, applied=applied, anchor=now), now


def in_words(loaded: Loaded) -> str:
    counts = _counts(loaded)
    listed = ", ".join(
        f"{count} {kind.replace('_', ' ')}{'s' if count > 1 else ''}" for kind, count in counts.items()
    )
    return listed or "no documents"


def _counts(loaded: Loaded) -> dict[str, int]:
    return dict(Counter(document.kind for document in loaded.documents))
