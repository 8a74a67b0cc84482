"""`tocsin migrate`: creates or updates the tables. Services never do that themselves."""

from __future__ import annotations

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json


def migrate(as_json: Json = False) -> None:
    """Create or update the tables in the database of TOCSIN_POSTGRES.

    \b
    Example:
      TOCSIN_POSTGRES=postgresql://me@localhost/tocsin tocsin migrate
    """
    applied, newest = run_command(_migrate())
    if as_json:
        print_json({"applied": applied, "at": newest})
    elif applied:
        typer.echo("\n".join(f"applied {name}" for name in applied))
    else:
        typer.echo(f"the database is up to date, at {newest}")


async def _migrate() -> tuple[list[str], str]:
    from migrations.roles.create import grant_again
    from migrations.runner import migrate as bring_up_to_date
    from migrations.runner import versions
    from tocsin.cli.session import command_settings
    from tocsin.core.db import open_session

    async with open_session(command_settings(), "migrate") as connection:
        applied = await bring_up_to_date(connection)
        await grant_again(connection)
        return applied, versions()[-1].name
