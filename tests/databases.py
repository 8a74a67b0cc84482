"""Databases for tests: a template, its clones, and their end."""

from __future__ import annotations

import psycopg
from psycopg import sql


def make_template(url: str) -> None:
    _run(url, sql.SQL("create database tocsin_template"))


def create_database(url: str, name: str) -> None:
    """Empty, for tests of the migrations themselves."""
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
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(command)
