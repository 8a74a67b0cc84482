"""Columns of a batch, as Postgres reads them."""

from __future__ import annotations

from tocsin.core.columns import numbers, plain_texts, texts
from tocsin.core.db import Connection

AWKWARD = ["", "NULL", 'say "x"', "a\\b", "{c,d}", "line\nbreak", "ü€😀", " ", '\\"', "null", ","]


async def test_postgres_reads_the_columns_as_they_were_given(connection: Connection) -> None:
    given_texts = [*AWKWARD, None]
    row = await (
        await connection.execute(
            "select %s::text[], %s::bigint[], %s::text[], %s::text[]",
            (texts(given_texts), numbers([1, None, -5]), plain_texts(["(0,1)", "a-b"]), plain_texts([])),
        )
    ).fetchone()
    assert row == (given_texts, [1, None, -5], ["(0,1)", "a-b"], [])
