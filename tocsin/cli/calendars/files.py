"""The calendars of rule files, or those in force."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rules.documents.load.calendars import Calendars

RuleFiles = Annotated[
    list[Path] | None,
    typer.Option("--rules", help="Rule file or folder with calendars; without it, those in force."),
]


def calendars_of_files(files: Sequence[Path]) -> Calendars:
    from rules.documents.load import load_files
    from rules.documents.load.calendars import Calendars
    from schemas.documents import CalendarDocument

    models = (document.model for document in load_files(list(files)).documents)
    return Calendars(model for model in models if isinstance(model, CalendarDocument))


async def calendars_in_force() -> Calendars:
    from rules.documents import calendar_year
    from tocsin.cli.session import database

    async with database() as connection:
        return await calendar_year.calendars_in_force(connection)
