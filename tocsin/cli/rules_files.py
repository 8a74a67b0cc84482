"""`tocsin check` and `tocsin apply`: rules files, read together, right as a whole or not used at all.

`check` needs no server: what a file names must be among the files. `apply` also knows what was applied
before. On failure every problem of every file is listed, one `file:line:column: message` per line, and
nothing changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.failures import finish
from tocsin.cli.options import CreatedBy, Json, person
from tocsin.cli.printing import print_json, print_table, utc_text

if TYPE_CHECKING:
    from rules.apply import Applied
    from rules.loading import Loaded
    from tocsin.core.db import Connection

Files = Annotated[list[Path], typer.Argument(help="Rules files in YAML.", metavar="FILES...")]


def check(files: Files, as_json: Json = False) -> None:
    """Check rules files without applying them; needs no server.

    \b
    Example:
      tocsin check examples/quickstart.yaml
    """
    from clock.time_source import wall_now
    from rules.loading import RulesInvalid, load_files

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


def apply(files: Files, by: CreatedBy = None, as_json: Json = False) -> None:
    """Apply rules files: all of them, or nothing.

    \b
    Example:
      tocsin apply examples/quickstart.yaml
    """
    applied = finish(_apply(files, by or person()))
    if as_json:
        print_json({"seq": applied.seq, "changes": [vars(change) for change in applied.changes]})
        return
    print_table(
        ("OUTCOME", "KIND", "NAME", "NEXT FIRE"),
        (
            (change.outcome, change.kind, change.name, utc_text(change.next_at) if change.next_at else "")
            for change in applied.changes
        ),
    )
    typer.echo(f"applied at seq {applied.seq}" if applied.seq else "nothing changed")


async def _apply(files: Sequence[Path], who: str) -> Applied:
    from tocsin.cli.session import database

    async with database() as connection:
        return await apply_files(connection, files, who, via="cli")


async def apply_files(connection: Connection, files: Sequence[Path], who: str, via: str) -> Applied:
    from rules.apply import apply as apply_loaded
    from rules.current import known_names, known_types
    from rules.loading import load_files
    from timers.schedules import Act
    from timers.working_set import database_now

    now = await database_now(connection)
    loaded = load_files(
        files, known=await known_names(connection), known_types=await known_types(connection), anchor=now
    )
    return await apply_loaded(connection, loaded, Act(who, via, now))


def in_words(loaded: Loaded) -> str:
    counts = _counts(loaded)
    listed = ", ".join(
        f"{count} {kind.replace('_', ' ')}{'s' if count > 1 else ''}" for kind, count in counts.items()
    )
    return listed or "no documents"


def _counts(loaded: Loaded) -> dict[str, int]:
    return dict(Counter(document.kind for document in loaded.documents))
