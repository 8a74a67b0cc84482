"""Classes of Postgres errors, one definition for the clock, the workers and the client.

An error belongs to exactly one `Fault`. Callers decide what a fault means to them: a transaction
that lost a race is started again, an outage restarts the service, and a batch that fails because of
one of its rows is halved until the row is known.
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
    ROW = auto()
    """The values of the statement. It fails again with the same values."""
    UNREADABLE = auto()
    """A stored value that Python cannot hold. The read fails again."""


def fault_of(error: psycopg.Error) -> Fault:
    if error.sqlstate is None:
        return Fault.UNREADABLE if isinstance(error, psycopg.DataError) else Fault.SERVER
    if error.sqlstate[:2] in _SERVER_CLASSES:
        return Fault.SERVER
    return Fault.SETUP if error.sqlstate[:2] in _SETUP_CLASSES else Fault.ROW


def lacks_partition(error: psycopg.Error) -> bool:
    """Whether no partition takes a row:

    Postgres reports it as a CHECK violation without a constraint name.
    """
    return isinstance(error, pg_errors.CheckViolation) and error.diag.constraint_name is None


def readable(error: psycopg.Error) -> Exception:
    """The error to raise: `InvalidInput` if a function of the schema rejected its arguments.

    Any other error is returned as it is.
    """
    return InvalidInput(str(error.diag.message_primary)) if error.sqlstate == INVALID else error
