"""`tocsin calendar import`: prints a calendar document with the days of an iCalendar file.

Guarantee: the document has dates only, so it means the same on every machine and at every time. Events
that are not whole days are named on stderr with their line. Needs no server, writes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli.output import printable
from tocsin.core.errors import InvalidInput, Refused

_MOST_YEARS = 50


def import_ics(
    file: Annotated[Path, typer.Argument(help="An iCalendar file (.ics).")],
    name: Annotated[str, typer.Option("--name", help="Name of the calendar.")],
    years: Annotated[
        str | None,
        typer.Option("--years", help="First and last year, as 2026-2030; five from this one by default."),
    ] = None,
) -> None:
    """Print a calendar document with the whole-day events of an iCalendar file.

    \b
    Example:
      tocsin calendar import holidays.ics --name us-holidays --years 2026-2030 > us-holidays.yaml
    """
    from rules.documents.ics import LARGEST_BYTES, date_texts, days_of_ics
    from rules.documents.load import load_text
    from rules.documents.yaml_text import document_text

    first, last = read_years(years)
    try:
        with file.open("rb") as source:
            content = source.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{str(file)!r} cannot be read: {error.strerror}") from None
    found = days_of_ics(content.decode(errors="replace"), first, last)
    for problem in found.problems:
        typer.echo(printable(f"{file}:{problem.line}: {problem.message}"), err=True)
    if not found.days:
        raise Refused(f"{str(file)!r} has no whole-day event in {first} to {last}", remedy="check --years")
    document = {"name": name, "dates": date_texts(found.days), "valid_until": f"{last}-12-31"}
    text = document_text("calendar", document)
    load_text(text, file=str(file))
    typer.echo(text, nl=False)


def read_years(text: str | None) -> tuple[int, int]:
    """`2026-2030`, `2026`, or five years from this one on."""
    from clock.time_source import wall_now

    if text is None:
        return wall_now().year, wall_now().year + 4
    first, _, last = text.partition("-")
    if not (first.isdigit() and (last or first).isdigit()):
        raise InvalidInput(f"--years {text[:40]!r} is not a range of years", remedy="write it as 2026-2030")
    begin, end = int(first), int(last or first)
    if not (1971 <= begin <= end <= 2200 and end - begin < _MOST_YEARS):
        raise InvalidInput(
            f"--years {text[:40]!r} is out of range",
            remedy=f"give up to {_MOST_YEARS} years from 1971 to 2200",
        )
    return begin, end
