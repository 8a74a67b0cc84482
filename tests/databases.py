"""Creates and drops the databases of tests.

Autovacuum is off: it would take locks and change the statistics at random times.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

from tests.wait import eventually_sync


def make_template(url: str) -> None:
    _run(url, sql.SQL("alter system set autovacuum = off"))
    _run(url, sql.SQL("select pg_reload_conf()"))
    _run(url, sql.SQL("create database tocsin_template"))


def create_database(url: str, name: str) -> None:
    """An empty database, for tests of the migrations."""
    _run(url, sql.SQL("create database {}").format(sql.Identifier(name)))


def clone_template(url: str, name: str) -> None:
    _run(
        url,
        sql.SQL("create database {} template tocsin_template strategy file_copy").format(
            sql.Identifier(name)
        ),
    )


def drop_database(url: str, name: str) -> None:
    _run(url, sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def _run(url: str, command: sql.SQL | sql.Composed) -> None:
    """Run a command; retried while a session that has just ended still uses the database."""

    def is_done() -> bool:
        try:
            connection.execute(command)
        except psycopg.errors.ObjectInUse:
            return False
        return True

    with psycopg.connect(url, autocommit=True) as connection:
        eventually_sync(is_done, command.as_string(connection))
