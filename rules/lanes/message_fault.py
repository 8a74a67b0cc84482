"""Tells errors that a message causes from errors of the environment.

Guarantee: an error of a message stays with that message when its batch is halved, and only such
errors halve a batch. Unreachable servers, locks, full disks, conflicts, missing rights, columns and
partitions are not about messages: the batch is tried again.
"""

from __future__ import annotations

import psycopg
from nats.errors import Error as NatsError

from tocsin.core.errors import TocsinError
from tocsin.core.sql_errors import is_row_fault


def is_message_fault(error: Exception) -> bool:
    if isinstance(error, psycopg.Error):
        return is_row_fault(error)
    return not isinstance(error, TocsinError | NatsError | OSError | TimeoutError)
