"""`tocsin.token` in SQL and `schemas.wire.subjects.token` in Python are one function."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.wire.subjects import token
from tests.conftest import with_database
from tests.databases import clone_template, drop_database

# Postgres has no NUL in a text, and an owner cannot have one either.
LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
TEXTS = st.text(LETTERS) | st.text(alphabet="_%.*> \n\taA0é鐘\u007f\u0080\U0001f514-5F", max_size=6)


@pytest.fixture(scope="module")
def session(template: str) -> Iterator[psycopg.Connection]:
    # A clone of its own: a template with a connected session cannot be cloned.
    clone_template(template, "subjects")
    with psycopg.connect(with_database(template, "subjects"), autocommit=True) as connection:
        yield connection
    drop_database(template, "subjects")


@settings(max_examples=150)
@given(st.lists(TEXTS, min_size=1, max_size=20))
def test_sql_and_python_make_the_same_token(session: psycopg.Connection, texts: list[str]) -> None:
    rows = session.execute(
        "select tocsin.token(t.one) from unnest(%s::text[]) with ordinality as t (one, place) order by place",
        (texts,),
    ).fetchall()
    assert [row[0] for row in rows] == [token(text) for text in texts]


def test_every_byte_is_encoded_alike(session: psycopg.Connection) -> None:
    texts = ["", "_", "__", *(chr(code) for code in range(1, 0x180))]
    rows = session.execute("select tocsin.token(one) from unnest(%s::text[]) as t (one)", (texts,)).fetchall()
    assert [row[0] for row in rows] == [token(text) for text in texts]
    assert session.execute("select tocsin.token(null)").fetchone() == (None,)
