"""Compares the rights in the database with what `grants.py` decides.

`check_roles` returns one sentence for each difference: a missing role, a right too many or too few, a
right of PUBLIC, a SECURITY DEFINER function whose search path the caller chooses, and a table or function
for which nothing is decided. Rights of other roles are the operator's own decision.
"""

from __future__ import annotations

from collections import defaultdict

from migrations.roles.grants import ROLES, function_grants, table_grants, tables_with_row_security
from tocsin.core.db import Connection, fetch_all

_PUBLIC = "PUBLIC"


async def check_roles(connection: Connection) -> list[str]:
    """All differences; empty if the rights are as decided."""
    missing = [
        name
        for (name,) in await fetch_all(
            connection, "migrations.roles/find_missing_roles", {"roles": list(ROLES)}
        )
    ]
    return [
        *(f"role {name!r} does not exist" for name in missing),
        *await check_public(connection),
        *await _check_tables(connection),
        *await _check_functions(connection),
    ]


async def check_public(connection: Connection) -> list[str]:
    """Rights that every role of the server has."""
    tables = await fetch_all(connection, "migrations.roles/list_table_rights")
    functions = await fetch_all(connection, "migrations.roles/list_function_rights")
    schema = await fetch_all(connection, "migrations.roles/list_schema_rights")
    return [
        *(f"PUBLIC has {right} on the schema" for (right,) in schema),
        *(f"PUBLIC has {right} on table {table!r}" for table, who, right, _ in tables if who == _PUBLIC),
        *(f"PUBLIC may execute function {name!r}" for name, who, _ in functions if who == _PUBLIC),
    ]


async def _check_tables(connection: Connection) -> list[str]:
    found: dict[str, dict[str, set[str]]] = {}
    guarded = set()
    for table, grantee, right, row_security in await fetch_all(
        connection, "migrations.roles/list_table_rights"
    ):
        rights = found.setdefault(table, defaultdict(set))
        if grantee in ROLES:
            rights[grantee].add(right)
        if row_security:
            guarded.add(table)
    decided = table_grants()
    problems = [f"no grants are decided for table {table!r}" for table in found.keys() - decided.keys()]
    problems += [f"table {table!r} does not exist" for table in decided.keys() - found.keys()]
    for table in sorted(found.keys() & decided.keys()):
        for role in ROLES:
            wanted, has = decided[table].get(role, frozenset()), found[table].get(role, set())
            problems += [f"{role} lacks {right} on table {table!r}" for right in sorted(wanted - has)]
            problems += [f"{role} has {right} on table {table!r}" for right in sorted(has - wanted)]
    problems += [
        f"table {table!r} has no row security" for table in tables_with_row_security() if table not in guarded
    ]
    return problems


async def _check_functions(connection: Connection) -> list[str]:
    found: dict[str, set[str]] = {}
    problems = []
    for name, grantee, is_open in await fetch_all(connection, "migrations.roles/list_function_rights"):
        roles = found.setdefault(name, set())
        if grantee in ROLES:
            roles.add(grantee)
        if is_open:
            problems.append(f"function {name!r} runs as the owner with the search path of its caller")
    decided = function_grants()
    problems += [f"no grants are decided for function {name!r}" for name in found.keys() - decided.keys()]
    problems += [f"function {name!r} does not exist" for name in decided.keys() - found.keys()]
    for name in sorted(found.keys() & decided.keys()):
        problems += [
            f"{role} may not execute function {name!r}" for role in sorted(decided[name] - found[name])
        ]
        problems += [f"{role} may execute function {name!r}" for role in sorted(found[name] - decided[name])]
    return problems
