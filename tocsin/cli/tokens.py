"""`tocsin token add | ping | list | revoke`: tokens of programs for the HTTP API. `tocsin token login`: a login link.

Guarantee: the text of a token, or of a link, is printed once and stored nowhere. It needs the rights of the
owner of the schema: a token with a grant of admin can do everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, OnlyOwner, current_user
from tocsin.cli.output import print_json, print_table, utc_text

if TYPE_CHECKING:
    from tocsin.api.access.tokens import NewToken
    from tocsin.core.settings import Settings

Grants = Annotated[
    list[str],
    typer.Option("--grant", help="ROLE:OWNERS, such as viewer:plant-* or operator:*; may be repeated."),
]


def add(
    name: Annotated[str, typer.Argument(help="Name of the program; the `who` of its changes.")],
    grant: Grants,
    expires: Annotated[
        str | None,
        typer.Option("--expires", help="How long it is valid, such as 90d; without end by default."),
    ] = None,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Add a token for the HTTP API, and print it once.

    Roles are viewer, responder, author, approver, sender, operator and admin.

    \b
    Examples:
      tocsin token add grafana --grant 'viewer:*'
      tocsin token add billing --grant author:billing --grant viewer:billing --expires 90d
    """
    added = run_command(_add(name, grant, expires, by or current_user()))
    if as_json:
        print_json({"id": added.id, "name": name, "token": added.text})
        return
    typer.echo(added.text)
    typer.echo(f"the token of {name!r} is shown only now; send it as `Authorization: Bearer TOKEN`", err=True)


def ping(
    heartbeat: Annotated[str, typer.Argument(help="Name of the heartbeat.")],
    owner: OnlyOwner = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the token; `ping-` and the owner by default.")
    ] = None,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Add a token that checks in to a heartbeat, and print its ping URL once.

    \b
    Examples:
      tocsin token ping nightly-backup
      curl -m 10 --retry 5 "$(tocsin token ping nightly-backup)"
    """
    name, url = run_command(_ping(heartbeat, owner, name, by or current_user()))
    if as_json:
        print_json({"name": name, "url": url})
        return
    typer.echo(url)
    typer.echo(
        f"the URL of the token {name!r} is shown only now; add /start, /fail or an exit code", err=True
    )


def list_all(as_json: Json = False) -> None:
    """List the tokens, without their texts.

    \b
    Example:
      tocsin token list
    """
    rows = run_command(_list())
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no tokens: `tocsin token add` makes one")
        return
    print_table(
        ("NAME", "TOKEN", "GRANTS", "CREATED", "BY", "EXPIRES", "LAST USED", "STATE"),
        (
            (
                row["name"],
                row["hint"],
                " ".join(row["grants"]),
                utc_text(row["created_at"]),
                row["created_by"],
                "" if row["expires_at"] is None else utc_text(row["expires_at"]),
                "" if row["last_used_at"] is None else utc_text(row["last_used_at"]),
                "live" if row["revoked_at"] is None else f"revoked by {row['revoked_by']}",
            )
            for row in rows
        ),
    )


def revoke(
    token: Annotated[str, typer.Argument(help="Name or id of the token.")],
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Revoke a token. Processes of the API accept it for at most five seconds more.

    \b
    Example:
      tocsin token revoke grafana
    """
    row = run_command(_revoke(token, by or current_user()))
    if as_json:
        print_json({"id": row["id"], "name": row["name"]})
    else:
        typer.echo(f"revoked the token of {row['name']!r}")


def login(
    name: Annotated[str | None, typer.Argument(help="Name of the person; your own by default.")] = None,
    grant: Annotated[
        list[str] | None, typer.Option("--grant", help="ROLE:OWNERS; admin:* by default.")
    ] = None,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Print a link that logs a person in once, within ten minutes.

    \b
    Example:
      tocsin token login ann --grant 'responder:*'
    """
    person = name or current_user()
    link = run_command(_login(person, grant or ["admin:*"], by or current_user()))
    if as_json:
        print_json({"name": person, "link": link})
    else:
        typer.echo(link)


async def _add(name: str, grants: list[str], expires: str | None, who: str) -> NewToken:
    from schemas.values.duration import parse_duration
    from timers.working_set import database_now
    from tocsin.api.access.grant_text import parse_grant
    from tocsin.api.access.tokens import TokenChange, add_token
    from tocsin.cli.access import require
    from tocsin.cli.session import database
    from tocsin.policy import Operation

    parsed = [parse_grant(grant) for grant in grants]
    async with database() as connection:
        expires_at = None if expires is None else await database_now(connection) + parse_duration(expires)
        await require(connection, Operation.MANAGE_TOKENS)
        return await add_token(connection, name, parsed, TokenChange(who, "cli"), expires_at=expires_at)


async def _ping(heartbeat: str, owner: str | None, name: str | None, who: str) -> tuple[str, str]:
    from rules.alarms.heartbeats import list_heartbeats
    from tocsin.api.access.tokens import TokenChange, add_token
    from tocsin.cli.session import command_settings, database
    from tocsin.core.errors import NotFound, Refused
    from tocsin.policy import AccessRole, Grant

    settings = command_settings()
    async with database(settings) as connection:
        _, rows = await list_heartbeats(connection, name=heartbeat, owner=owner)
        if not rows:
            raise NotFound(f"there is no heartbeat {heartbeat!r}", remedy="`tocsin heartbeats` lists them")
        if len(rows) > 1:
            owners = ", ".join(row.owner for row in rows[:10])
            raise Refused(f"the heartbeat {heartbeat!r} has several owners ({owners})", remedy="use --owner")
        token = name or f"ping-{rows[0].owner}"
        grants = [Grant(AccessRole.SENDER, rows[0].owner)]
        added = await add_token(connection, token, grants, TokenChange(who, "cli"))
    return token, f"{_public_url(settings)}/ping/{added.text}/{heartbeat}"


async def _list() -> list[dict[str, Any]]:
    from tocsin.api.access.tokens import list_tokens
    from tocsin.cli.session import database

    async with database() as connection:
        return await list_tokens(connection)


async def _revoke(token: str, who: str) -> dict[str, Any]:
    from tocsin.api.access.tokens import TokenChange, revoke_token
    from tocsin.cli.access import require
    from tocsin.cli.session import database
    from tocsin.policy import Operation

    async with database() as connection:
        await require(connection, Operation.MANAGE_TOKENS)
        return await revoke_token(connection, token, TokenChange(who, "cli"))


async def _login(name: str, grants: list[str], who: str) -> str:
    from tocsin.api.access.grant_text import parse_grant
    from tocsin.api.access.sessions import add_login_link
    from tocsin.cli.access import require
    from tocsin.cli.session import command_settings, database
    from tocsin.policy import Operation

    settings = command_settings()
    parsed = [parse_grant(grant) for grant in grants]
    async with database(settings) as connection:
        await require(connection, Operation.MANAGE_TOKENS)
        code = await add_login_link(connection, name, parsed, who, "cli")
    return f"{_public_url(settings)}/login?code={code}"


def _public_url(settings: Settings) -> str:
    scheme = "https" if settings.api_tls_cert else "http"
    return settings.console_url or f"{scheme}://{settings.api}"
