"""The rule files that `check`, `plan` and `apply` name: read together, valid as a whole or not used
at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.output import printable

if TYPE_CHECKING:
    from datetime import datetime

    from rules.documents.load import LoadedDocuments, RuleProblem
    from tocsin.core.db import Connection

Files = Annotated[
    list[Path], typer.Argument(help="Rule files, or folders that hold them.", metavar="FILES...")
]
Prune = Annotated[
    bool, typer.Option("--prune", help="Remove documents that were applied and are not in the files.")
]


async def load(
    connection: Connection, files: Sequence[Path], prune: bool
) -> tuple[LoadedDocuments, datetime]:
    """The documents, and the instant at which they were read.

    A document may name another that was applied before. With `prune`, everything that a document
    names must be in the files, because the rest is removed.
    """
    from rules.documents.load import load_files
    from rules.documents.rule_book import applied_documents, known_names
    from schemas.documents import DOCUMENT_KINDS
    from timers.working_set import database_now

    now = await database_now(connection)
    if prune:
        return load_files(files, anchor=now), now
    names = await known_names(connection)
    applied = await applied_documents(connection, *DOCUMENT_KINDS.values())
    return load_files(files, known=names, applied=applied, anchor=now), now


def print_warnings(warnings: Sequence[RuleProblem]) -> None:
    """Print warnings on stderr, in the form of problems, so that an editor can jump to them."""
    for warning in warnings:
        typer.echo(printable(str(warning.as_warning())), err=True)


def warnings_json(warnings: Sequence[RuleProblem]) -> list[dict[str, object]]:
    return [warning._asdict() for warning in warnings]


def warnings_count(warnings: Sequence[RuleProblem]) -> str:
    return f", {len(warnings)} warning{'' if len(warnings) == 1 else 's'}" if warnings else ""


def document_counts(loaded: LoadedDocuments) -> dict[str, int]:
    return dict(Counter(document.kind for document in loaded.documents))


def counts_text(loaded: LoadedDocuments) -> str:
    """`2 schedules, 1 event_rule`"""
    counts = document_counts(loaded).items()
    return ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts) or "no documents"
