"""Columns of a batch, as Postgres reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.columns import instant_of, microseconds_of, numbers, plain_texts, texts
from tocsin.core.db import Connection

AWKWARD = ["", "NULL", 'say "x"', "a\\b", "{c,d}", "line\nbreak", "ü€😀", " ", '\\"', "null", ","]


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_survives_as_microseconds(instant: datetime) -> None:
    assert instant_of(microseconds_of(instant)) == instant


async def test_postgres_reads_the_columns_as_they_were_given(connection: Connection) -> None:
    given_texts = [*AWKWARD, None]
    row = await (
        await connection.execute(
            "select %s::text[], %s::bigint[], %s::text[], %s::text[]",
            (texts(given_texts), numbers([1, None, -5]), plain_texts(["(0,1)", "a-b"]), plain_texts([])),
        )
    ).fetchone()
    assert row == (given_texts, [1, None, -5], ["(0,1)", "a-b"], [])
