"""`tocsin plan`: shows the changes that an apply would make. Writes nothing.

Exit codes with `--exit-code`: 0 without changes, 3 with changes; 1 and 2 are failures, as
everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json
from tocsin.cli.rules.files import Files, Prune, print_warnings, warnings_json

if TYPE_CHECKING:
    from rules.apply import Preview
    from rules.documents.load import RuleProblem

CHANGES_PENDING = 3


def plan(
    files: Files,
    prune: Prune = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 3 if there are changes to apply.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what `tocsin apply` would change; changes nothing.

    \b
    Example:
      tocsin plan examples/quickstart.yaml
    """
    from tocsin.cli.rules.plan_text import plan_json, plan_lines

    preview, warnings = run_command(_preview(files, prune))
    if as_json:
        print_json({**plan_json(preview), "warnings": warnings_json(warnings)})
    else:
        print_warnings(warnings)
        for line in plan_lines(preview):
            typer.echo(line)
    if exit_code and preview.plan.effective:
        raise typer.Exit(CHANGES_PENDING)


async def _preview(files: Sequence[Path], prune: bool) -> tuple[Preview, Sequence[RuleProblem]]:
    from rules.apply import preview
    from tocsin.cli.rules.files import load
    from tocsin.cli.session import database

    async with database() as connection:
        loaded, now = await load(connection, files, prune)
        return await preview(connection, loaded, now, prune=prune), loaded.warnings
