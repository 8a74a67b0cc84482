"""`tocsin calendar holidays`: prints a calendar document with the public holidays of a country.

Guarantee: the document has dates only, so it means the same on every machine and at every time. Needs
no server, writes nothing.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.calendars.import_ics import read_years
from tocsin.cli.output import printable
from tocsin.core.errors import Refused


def holidays(
    country: Annotated[str, typer.Argument(help="Code of the country, as US, GB or DE.")],
    name: Annotated[str, typer.Option("--name", help="Name of the calendar.")],
    region: Annotated[
        str | None, typer.Option("--region", help="Code of a state or province, as NY or BY.")
    ] = None,
    years: Annotated[
        str | None,
        typer.Option("--years", help="First and last year, as 2026-2030; five from this one by default."),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option("--category", help="As public, bank or government; public by default. Repeatable."),
    ] = None,
) -> None:
    """Print a calendar document with the public holidays of a country.

    It needs the python package 'holidays', which is in requirements/import.txt.

    \b
    Example:
      tocsin calendar holidays US --region NY --years 2026-2030 --name ny-holidays > ny-holidays.yaml
    """
    from rules.documents.country_holidays import country_holidays
    from rules.documents.ics import date_texts
    from rules.documents.load import load_text
    from rules.documents.yaml_text import document_text

    first, last = read_years(years)
    found = country_holidays(country, region, first, last, category or ["public"])
    place = country.upper() if region is None else f"{country.upper()}-{region}"
    if not found.days:
        raise Refused(f"{place} has no such holidays in {first} to {last}", remedy="check --category")
    document = {
        "name": name,
        "dates": date_texts(tuple(found.days)),
        "valid_until": f"{last}-12-31",
        "description": f"Holidays of {place} ({', '.join(category or ['public'])}), by holidays {found.version}.",
    }
    text = document_text("calendar", document)
    load_text(text, file=place)
    for day, title in found.days.items():
        typer.echo(printable(f"# {day:%Y-%m-%d %a}  {title}"))
    typer.echo(text, nl=False)
