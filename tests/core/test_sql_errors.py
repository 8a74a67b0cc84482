"""Classes of Postgres errors: each SQLSTATE belongs to one fault."""

from __future__ import annotations

import psycopg
import pytest

from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput
from tocsin.core.sql_errors import Fault, fault_of, is_row_fault, readable


@pytest.mark.parametrize(
    ("sqlstate", "fault"),
    [
        ("08006", Fault.SERVER),  # connection failure
        ("25P03", Fault.SERVER),  # idle in transaction
        ("40001", Fault.SERVER),  # serialization failure
        ("40P01", Fault.SERVER),  # deadlock
        ("53100", Fault.SERVER),  # disk full
        ("55P03", Fault.SERVER),  # lock not available
        ("57014", Fault.SERVER),  # query canceled
        ("58030", Fault.SERVER),  # i/o error
        ("XX001", Fault.SERVER),  # corrupted data
        ("0A000", Fault.SETUP),  # feature not supported
        ("28P01", Fault.SETUP),  # wrong password
        ("42501", Fault.SETUP),  # insufficient privilege
        ("42P01", Fault.SETUP),  # undefined table
        ("22003", Fault.ROW),  # number out of range
        ("23505", Fault.ROW),  # unique violation
        ("P0001", Fault.ROW),  # raise exception
    ],
)
def test_each_sqlstate_belongs_to_one_fault(sqlstate: str, fault: Fault) -> None:
    assert fault_of(psycopg.errors.lookup(sqlstate)()) is fault


def test_an_error_without_a_sqlstate_is_of_the_connection_or_of_a_value() -> None:
    assert fault_of(psycopg.OperationalError("the connection is closed")) is Fault.SERVER
    assert fault_of(psycopg.DataError("date too large")) is Fault.UNREADABLE


async def test_a_row_without_a_partition_differs_from_other_check_violations(connection: Connection) -> None:
    await connection.execute("create table parted (n int check (n > 0)) partition by range (n)")
    await connection.execute("create table parted_low partition of parted for values from (0) to (10)")
    with pytest.raises(psycopg.errors.CheckViolation) as beyond:
        await connection.execute("insert into parted values (10)")
    with pytest.raises(psycopg.errors.CheckViolation) as negative:
        await connection.execute("insert into parted values (0)")
    assert (fault_of(beyond.value), fault_of(negative.value)) == (Fault.NO_PARTITION, Fault.ROW)
    assert (is_row_fault(beyond.value), is_row_fault(negative.value)) == (False, True)
    with pytest.raises(psycopg.errors.CheckViolation) as raised:
        await connection.execute("do $$ begin raise check_violation; end $$")
    assert fault_of(raised.value) is Fault.ROW


async def test_arguments_that_a_function_rejects_are_invalid_input(connection: Connection) -> None:
    with pytest.raises(psycopg.Error) as rejected:
        await all_rows(connection, "select tocsin.arm('schedule-tick', 'ref', '', tocsin.instant(), '{}', 1)")
    assert isinstance(readable(rejected.value), InvalidInput)
    other = psycopg.errors.UniqueViolation()
    assert readable(other) is other
