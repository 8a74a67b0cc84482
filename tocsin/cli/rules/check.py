"""`tocsin check`: validates rule files without a server.

Everything that a document names must be in the files. All problems of all files are listed, one
`file:line:column: message` per line.
"""

from __future__ import annotations

import typer

from tocsin.cli.options import Json
from tocsin.cli.output import print_json
from tocsin.cli.rules.files import Files, counts_text, document_counts


def check(files: Files, as_json: Json = False) -> None:
    """Check rule files; needs no server.

    \b
    Example:
      tocsin check examples/quickstart.yaml
    """
    from clock.time_source import wall_now
    from rules.documents.load import load_files
    from tocsin.cli.session import command_settings

    command_settings()
    loaded = load_files(files, anchor=wall_now())
    if as_json:
        print_json({"ok": True, "documents": document_counts(loaded)})
    else:
        typer.echo(f"ok: {counts_text(loaded)}")
