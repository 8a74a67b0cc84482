"""`tocsin rules`: shows the documents in force, with the apply that stored them. Reads only.

Guarantee: `tocsin check` accepts the output of `--yaml`, and `tocsin plan` of it shows no changes.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, print_table, printable, utc_text
from tocsin.cli.remote.over_http import over_http
from tocsin.core.errors import InvalidInput, Refused


def _kinds() -> list[str]:
    from schemas.documents import DOCUMENT_KINDS

    return list(DOCUMENT_KINDS)


def rules(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="schedule, event_rule, action_rule, action, channel, calendar and so on; all by default.",
            autocompletion=_kinds,
        ),
    ] = None,
    name: Annotated[str | None, typer.Argument(help="Name of one document of this kind.")] = None,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Print the documents as a rule file.")] = False,
    as_json: Json = False,
) -> None:
    """List the rules that are applied, or show one.

    \b
    Examples:
      tocsin rules
      tocsin rules event_rule room-hot
      tocsin rules --yaml > rules.yaml
    """
    if as_yaml and as_json:
        raise InvalidInput("--yaml and --json exclude each other", remedy="keep one of them")
    from rules.documents.applied import check_kind

    check_kind(kind)
    documents = run_command(_read(kind, name))
    if name is not None and not documents:
        raise Refused(f"no {kind} {name!r} is applied", remedy=f"`tocsin rules {kind}` lists those that are")
    if as_json:
        print_json(documents if name is None else documents[0])
    elif as_yaml:
        _print_yaml(documents)
    elif name is not None:
        _print_one(documents[0])
    elif documents:
        _print_list(documents)
    else:
        typer.echo("no rules are applied" if kind is None else f"no {kind} is applied")


def _print_list(documents: list[dict[str, Any]]) -> None:
    print_table(
        ("KIND", "NAME", "VERSION", "SINCE SEQ", "APPLIED AT", "BY", "TITLE"),
        (
            (
                row["kind"],
                row["name"],
                str(row["version"]),
                str(row["seq"]),
                "" if row["applied_at"] is None else utc_text(row["applied_at"]),
                row["applied_by"] or "",
                row["document"].get("title") or "",
            )
            for row in documents
        ),
    )


def _print_one(row: dict[str, Any]) -> None:
    typer.echo(f"# version {row['version']}, in force since seq {row['seq']}")
    if row["applied_at"] is not None:
        author = f"{row['applied_by']} via {row['via']}"
        typer.echo(printable(f"# applied at {utc_text(row['applied_at'])} by {author}"))
    _print_yaml([row])


def _print_yaml(documents: list[dict[str, Any]]) -> None:
    from rules.documents.yaml_text import document_text

    if not documents:
        raise Refused("no rules are applied", remedy="apply some with `tocsin apply`")
    texts = (document_text(row["kind"], row["document"]) for row in documents)
    typer.echo("---\n".join(texts), nl=False)


@over_http("instance.list_rules")
async def _read(kind: str | None, name: str | None) -> list[dict[str, Any]]:
    from rules.documents.applied import list_applied
    from tocsin.cli.session import database

    async with database() as connection:
        return await list_applied(connection, kind, name)
