"""The events that record check-ins.

Guarantee: each check-in that a batch of the data lane reads becomes one event, in the transaction of the
batch and before the alarms that follow from it. A log that came in the same message is part of it. A
check-in of a heartbeat that no document names becomes an event too: `tocsin doctor` lists it.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rules.engine import Arrival
from schemas.wire.check_in import HEARTBEAT_PREFIX, check_in_event, heartbeat_name, log_key, read_check_in
from tocsin.core.records import NewEvent


def check_in_events(inputs: Iterable[object]) -> Iterator[NewEvent]:
    """The events of the check-ins among the inputs of a batch, in their order."""
    logs: dict[tuple[int, str, str], str] = {}
    for position, arrival in enumerate(inputs):
        if not isinstance(arrival, Arrival) or not arrival.key.startswith(HEARTBEAT_PREFIX):
            continue
        name = heartbeat_name(arrival.key)
        if name is None:
            logs[arrival.seq, arrival.owner, arrival.key] = str(arrival.value)
            continue
        check_in = read_check_in(arrival.value, arrival.labels)
        log = logs.get((arrival.seq, arrival.owner, log_key(name)), "")
        yield check_in_event(arrival.owner, name, check_in, arrival.at, arrival.seq, position, log)
