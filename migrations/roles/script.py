"""The statements that create the roles and give each its rights; `deploy/postgres/roles.sql` has them.

They may run again at any time: rights that are no longer decided are revoked first.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrations.roles.grants import ROLES, function_grants, table_grants, tables_with_row_security

_HEAD = """\
-- Roles for Tocsin on your own Postgres: one per component, with the rights that it needs. Written by
-- `python -m migrations.roles`. Run it as the role that ran `tocsin migrate`, with the right to create
-- roles, or run `tocsin roles create`, which does the same:
--
--     psql "$TOCSIN_POSTGRES" -v ON_ERROR_STOP=1 -f deploy/postgres/roles.sql
--
-- Run it again after each `tocsin migrate`. The roles may log in, and have no password: give each one
-- (`alter role tocsin_clock password ...`) or let pg_hba.conf authenticate it. docs/operating.md
-- describes the roles."""


def role_statements() -> Iterator[str]:
    """Create the roles that do not exist. Needs the right to create roles."""
    for role, purpose in ROLES.items():
        yield (
            f"do $$ begin create role {role} login; comment on role {role} is 'Tocsin: {purpose}.'; "
            "exception when duplicate_object or unique_violation then null; end $$"
        )


def grant_statements() -> Iterator[str]:
    """Give the roles their rights. Needs the owner of the schema."""
    everyone = ", ".join(ROLES)
    yield f"revoke all on all tables in schema tocsin from public, {everyone}"
    yield f"revoke all on all functions in schema tocsin from public, {everyone}"
    yield f"grant usage on schema tocsin to {everyone}"
    yield f"grant select on public.tocsin_migration to {everyone}"
    for table, by_role in table_grants().items():
        for role, rights in by_role.items():
            yield f"grant {', '.join(sorted(rights))} on tocsin.{table} to {role}"
    for function, roles in function_grants().items():
        if roles:
            yield f"grant execute on function tocsin.{function} to {', '.join(sorted(roles))}"
    for table in tables_with_row_security():
        yield f"do $$ begin perform tocsin.protect_rows('{table}'); end $$"


def script() -> str:
    """All statements as one psql script."""
    body = ";\n".join(["begin", *role_statements(), *grant_statements(), "commit"])
    return f"{_HEAD}\n\n{body};\n"
