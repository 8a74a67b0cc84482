"""`tocsin check`: validates rule files without a server.

Everything that a document names must be in the files. All problems of all files are listed, one
`file:line:column: message` per line. Warnings are printed on stderr and do not change the exit code,
unless `--strict` is given.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.options import Json
from tocsin.cli.output import print_json
from tocsin.cli.rules.files import (
    Files,
    counts_text,
    document_counts,
    print_warnings,
    warnings_count,
    warnings_json,
)


def check(
    files: Files,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as problems.")] = False,
    as_json: Json = False,
) -> None:
    """Check rule files; needs no server.

    \b
    Example:
      tocsin check examples/quickstart.yaml
    """
    from clock.time_source import wall_now
    from rules.documents.load import RulesInvalid, load_files
    from tocsin.cli.session import command_settings

    command_settings()
    loaded = load_files(files, anchor=wall_now())
    if strict and loaded.warnings:
        raise RulesInvalid([warning.as_warning() for warning in loaded.warnings])
    if as_json:
        warnings = warnings_json(loaded.warnings)
        print_json({"ok": True, "documents": document_counts(loaded), "warnings": warnings})
        return
    print_warnings(loaded.warnings)
    typer.echo(f"ok: {counts_text(loaded)}{warnings_count(loaded.warnings)}")
