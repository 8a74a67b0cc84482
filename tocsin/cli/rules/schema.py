"""`tocsin schema`: prints the JSON Schemas of documents and messages, for editors and code
generators.

Guarantee: the output is the schema that this version validates by. The same files are in
`schemas/json`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.core.errors import InvalidInput


def schema(
    name: Annotated[
        str, typer.Argument(help="A kind of document, or a message; all kinds of documents by default.")
    ] = "rules",
) -> None:
    """Print the JSON Schema of rule files or messages.

    \b
    Examples:
      tocsin schema > tocsin.schema.json
      tocsin schema schedule
    """
    import difflib

    from schemas.export import SCHEMAS, text_of

    if name not in SCHEMAS:
        near = difflib.get_close_matches(name, SCHEMAS, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(SCHEMAS)}"
        raise InvalidInput(f"there is no schema {name!r}", remedy=remedy)
    typer.echo(text_of(name), nl=False)
