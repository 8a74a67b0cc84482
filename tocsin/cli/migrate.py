"""`tocsin migrate`: bring the database up to date; services never do it by themselves."""

from __future__ import annotations

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json
from tocsin.cli.output import print_json


def migrate(as_json: Json = False) -> None:
    """Create or update the tables of Tocsin in the database that TOCSIN_POSTGRES names.

    \b
    Example:
      TOCSIN_POSTGRES=postgresql://me@localhost/tocsin tocsin migrate
    """
    applied, newest = finish(_migrate())
    if as_json:
        print_json({"applied": applied, "at": newest})
    elif applied:
        typer.echo("\n".join(f"applied {name}" for name in applied))
    else:
        typer.echo(f"nothing to do: the database is at {newest}")


async def _migrate() -> tuple[list[str], str]:
    from migrations.runner import migrate as bring_up_to_date
    from migrations.runner import versions
    from tocsin.cli.session import command_settings
    from tocsin.core.db import open_session

    async with open_session(command_settings(), "migrate") as connection:
        return await bring_up_to_date(connection), versions()[-1].name
