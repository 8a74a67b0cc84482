"""`tocsin roles`: creates and checks the Postgres roles of the components, and grants owners to them."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, current_user
from tocsin.cli.output import print_json, print_table, utc_text
from tocsin.core.errors import InvalidInput

Grantee = Annotated[str, typer.Argument(help="A role of Postgres, which its members share.")]
Pattern = Annotated[str, typer.Argument(help="An owner, or the beginning of owners and *: 'plant-*'.")]


def create() -> None:
    """Create the roles, and give each the rights that it needs. Run it as the owner of the schema.

    \b
    Example:
      tocsin roles create
    """
    run_command(_create())
    typer.echo("the roles have their rights; give each a way to log in, see docs/operating.md")


def check(as_json: Json = False) -> None:
    """Compare the rights in the database with those that the components need.

    \b
    Example:
      tocsin roles check
    """
    problems = run_command(_check())
    if as_json:
        print_json(problems)
    else:
        typer.echo("\n".join(problems) or "every role has the rights that it needs, and no others")
    if problems:
        raise typer.Exit(1)


def grant(grantee: Grantee, pattern: Pattern) -> None:
    """Let a role use the schedules and see the rows of an owner.

    \b
    Example:
      tocsin roles grant billing_service billing
    """
    if not re.fullmatch(r"[^*]*\*?", pattern):
        raise InvalidInput(
            f"pattern {pattern!r} has a * that is not at its end", remedy="write one at the end"
        )
    run_command(_change("grant", grantee, pattern))
    typer.echo(f"{grantee} may use {pattern!r}")


def revoke(grantee: Grantee, pattern: Pattern) -> None:
    """Take back what `grant` gave.

    \b
    Example:
      tocsin roles revoke billing_service billing
    """
    if not run_command(_change("revoke", grantee, pattern)):
        raise InvalidInput(f"{grantee!r} has no grant {pattern!r}", remedy="`tocsin roles grants` lists them")
    typer.echo(f"{grantee} may no longer use {pattern!r}")


def grants(as_json: Json = False) -> None:
    """List which role may use which owners.

    \b
    Example:
      tocsin roles grants
    """
    rows = run_command(_grants())
    if as_json:
        print_json(rows)
    elif not rows:
        typer.echo("no owner is granted to a role")
    else:
        print_table(
            ("ROLE", "OWNERS", "BY", "SINCE"),
            (
                (row["grantee"], row["pattern"], row["granted_by"], utc_text(row["granted_at"]))
                for row in rows
            ),
        )


async def _create() -> None:
    from migrations.roles.create import create_roles
    from tocsin.cli.session import database

    async with database() as connection:
        await create_roles(connection)


async def _check() -> list[str]:
    from migrations.roles.check import check_roles
    from tocsin.cli.session import database

    async with database() as connection:
        return await check_roles(connection)


async def _grants() -> list[dict[str, Any]]:
    from tocsin.cli.session import database
    from tocsin.core.db import fetch_dicts

    async with database() as connection:
        return await fetch_dicts(connection, "tocsin.cli/list_owner_grants")


async def _change(verb: str, grantee: str, pattern: str) -> bool:
    from tocsin.cli.session import command_actor, database
    from tocsin.core.audit import record_audit
    from tocsin.core.db import fetch_value
    from tocsin.policy import Operation

    async with database() as connection, connection.transaction():
        actor = await command_actor(connection, current_user(), Operation.MANAGE_GRANTS)
        parameters = {"grantee": grantee, "pattern": pattern, "who": actor.who}
        if verb == "grant":
            changed = await fetch_value(connection, "tocsin.cli/grant_owner", parameters)
        else:
            changed = await fetch_value(connection, "tocsin.cli/revoke_owner", parameters)
        if changed:
            await record_audit(connection, actor, verb, "owner-grant", grantee, new={"pattern": pattern})
        return bool(changed)
