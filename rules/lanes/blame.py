"""Whose fault an error is: a message's own, or the world's.

Guarantee: an error of a message follows it when its batch is halved, and only such errors make anybody halve. Servers
that are away, locks, full disks and lost races say nothing about messages: they are waited out.
"""

from __future__ import annotations

import psycopg
from nats.errors import Error as NatsError

from tocsin.core.errors import TocsinError

# Classes of SQLSTATE: connection, transaction state, rollback, resources, state of objects, operator, system, internal.
_OF_THE_WORLD = ("08", "25", "40", "53", "55", "57", "58", "XX")


def is_message_fault(error: Exception) -> bool:
    if isinstance(error, psycopg.Error):
        return error.sqlstate is not None and not error.sqlstate.startswith(_OF_THE_WORLD)
    return not isinstance(error, TocsinError | NatsError | OSError | TimeoutError)
