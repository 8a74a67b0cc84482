"""Whose fault an error is: a message's own, or the world's.

Guarantee: an error of a message follows it when its batch is halved, and only such errors make anybody halve. Servers
that are away, locks, full disks and lost races say nothing about messages: they are waited out.
"""

from __future__ import annotations

import psycopg
from nats.errors import Error as NatsError

from tocsin.core.errors import TocsinError
from tocsin.core.sql_errors import Fault, fault_of


def is_message_fault(error: Exception) -> bool:
    if isinstance(error, psycopg.Error):
        return fault_of(error) in (Fault.ROW, Fault.SETUP)
    return not isinstance(error, TocsinError | NatsError | OSError | TimeoutError)
