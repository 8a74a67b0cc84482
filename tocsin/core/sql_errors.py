"""Classes of Postgres errors, one definition for the clock, the workers and the client.

An error belongs to exactly one `Fault`, and only `is_row_fault` may be blamed on a row or a
message. Everything else is waited out: a transaction that lost a race is started again, a missing
partition is created, an outage restarts the service, and a missing right or column stops the work
until an operator has restored it. A batch that fails because of one of its rows is halved until the
row is known.
"""

from __future__ import annotations

from enum import Enum, auto

import psycopg
from psycopg import errors as pg_errors

from tocsin.core.errors import InvalidInput

# SQLSTATEs that the functions of the schema raise on purpose.
DEPOSED = "TS001"
INVALID = "TS002"
OTHER_CONTENT = "TS004"
NO_GAP = "TS005"

LOST_RACE = (pg_errors.SerializationFailure, pg_errors.DeadlockDetected)
"""The transaction lost to another one and may be started again."""
LOCK_TIMEOUT = pg_errors.LockNotAvailable
"""Another session held a lock for longer than `lock_timeout`."""
OUTAGE = (psycopg.OperationalError, pg_errors.IdleInTransactionSessionTimeout)
"""Raised by a restart of Postgres, or after this process was frozen inside a transaction."""

# Connection, transaction state, rollback, resources, state of objects, operator, system, internal.
_SERVER_CLASSES = frozenset({"08", "25", "40", "53", "55", "57", "58", "XX"})
# Feature, statement name, authorisation, catalog, schema, syntax and access rule.
_SETUP_CLASSES = frozenset({"0A", "26", "28", "3D", "3F", "42"})


class Fault(Enum):
    """The part of the system that an error is about."""

    SERVER = auto()
    """The server, the connection, a lock or a race. The same statement may succeed later."""
    SETUP = auto()
    """The schema or the rights of our role. The statement fails until an operator changes them."""
    NO_PARTITION = auto()
    """A partitioned table has no partition for the row. `extend_log` creates those of the log."""
    ROW = auto()
    """The values of the statement. It fails again with the same values."""
    UNREADABLE = auto()
    """A value that Python cannot hold, or that the driver cannot send. It fails again."""


def fault_of(error: psycopg.Error) -> Fault:
    if error.sqlstate is None:
        return Fault.UNREADABLE if isinstance(error, psycopg.DataError) else Fault.SERVER
    if error.sqlstate[:2] in _SERVER_CLASSES:
        return Fault.SERVER
    if error.sqlstate[:2] in _SETUP_CLASSES:
        return Fault.SETUP
    return Fault.NO_PARTITION if _lacks_partition(error) else Fault.ROW


def _lacks_partition(error: psycopg.Error) -> bool:
    """Postgres reports it as a CHECK violation that names a table and no constraint."""
    diag = error.diag
    return (
        isinstance(error, pg_errors.CheckViolation)
        and diag.constraint_name is None
        and diag.table_name is not None
    )


def is_row_fault(error: psycopg.Error) -> bool:
    """Whether the error may be blamed on the row or the message that was being processed."""
    return fault_of(error) in (Fault.ROW, Fault.UNREADABLE)


def readable(error: psycopg.Error) -> Exception:
    """The error to raise: `InvalidInput` if a function of the schema rejected its arguments.

    Any other error is returned as it is.
    """
    return InvalidInput(str(error.diag.message_primary)) if error.sqlstate == INVALID else error


def summary(error: BaseException) -> str:
    """The name and the first line of an error, without the values of the row."""
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    text = primary or str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
