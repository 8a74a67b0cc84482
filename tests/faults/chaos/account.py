"""The account of a run: what was lost, doubled, out of order or wrong, from the tables and the stream.

Guarantee: nothing here asks a service. Acknowledged datapoints come from the producer, nominal times
from the schedules, effects from the consumer's table, webhooks from the receiver. Expected alarms are
computed from the stored arrivals.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from tests.faults.chaos.installation import Installation, delivered_events
from tests.faults.chaos.load import HOLDS_FOR, HOT, HOT_KEY, acknowledged_datapoints
from tests.faults.workload import account as account_of_fires
from tests.streams import StoredMessage, read_stream

_WITHIN_S = 60.0
Row = tuple[Any, ...]


@dataclass
class Costs:
    lost: dict[str, int] = field(default_factory=dict)
    doubled: dict[str, int] = field(default_factory=dict)
    out_of_order: dict[str, int] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    webhooks_repeated: int = 0
    """Allowed: a delivery is at least once, with one idempotency key."""
    handled: dict[str, int] = field(default_factory=dict)
    """How much of everything there was, so that an empty run is not a clean one."""

    def total(self, what: str) -> int:
        return sum(asdict(self)[what].values())

    @property
    def is_clean(self) -> bool:
        return not any(self.total(what) for what in ("lost", "doubled", "out_of_order", "wrong"))


def account(chaos: Installation, rounds: int) -> Costs:
    costs = Costs()
    _datapoints(chaos, rounds, costs)
    _fires(chaos, costs)
    records = chaos.read(_RECORDS)
    _stream(chaos, records, costs)
    _effects(chaos, records, costs)
    _webhooks(chaos, costs)
    _staleness_and_alarms(chaos, costs)
    return costs


def _datapoints(chaos: Installation, rounds: int, costs: Costs) -> None:
    rows = chaos.read(_DATAPOINTS)
    stored = Counter((owner, key, value % HOT) for owner, key, value, _ in rows)
    expected = set(acknowledged_datapoints(rounds))
    costs.handled["datapoints"] = len(rows)
    costs.lost["datapoints"] = len(expected - stored.keys())
    costs.doubled["datapoints"] = sum(count - 1 for count in stored.values())
    costs.out_of_order["datapoints"] = sum(
        inversions([value % HOT for *_, value, _ in group])
        for _, group in groupby(rows, key=itemgetter(0, 1))
    )


def _fires(chaos: Installation, costs: Costs) -> None:
    fires = account_of_fires(chaos.database.url, chaos.firsts)
    costs.handled["fires"] = fires.fired
    costs.handled["missed"] = fires.missed
    costs.lost["occurrences"] = len(fires.lost)
    costs.doubled["occurrences"] = len(fires.doubled)
    costs.doubled["ids"] = fires.repeated_ids
    costs.wrong["gaps"] = fires.gaps


def _stream(chaos: Installation, records: Sequence[Row], costs: Costs) -> None:
    """Compare log and stream by id and seq. Sequences of an accepted loss may hold anything."""
    count = chaos.last_sequence()
    stored = chaos.background.call(read_stream(chaos.direct, count, within=_WITHIN_S))
    gaps = [
        range(first, last + 1) for first, last in chaos.read("select from_seq, until_seq from tocsin.log_gap")
    ]
    kept = [message for message in stored if not any(message.seq in gap for gap in gaps)]
    ids = [json.loads(message.data)["id"] for message in kept]
    costs.handled["records"] = len(records)
    costs.handled["records_lost_with_commits"] = len(stored) - len(kept)
    costs.lost["records"] = len({str(id) for _, id in records} - set(ids))
    costs.doubled["records"] = len(ids) - len(set(ids))
    costs.wrong["records"] = _differences(kept, records)
    costs.out_of_order["records"] = inversions([message.seq for message in kept])


def _differences(stored: Sequence[StoredMessage], records: Sequence[Row]) -> int:
    """Messages whose sequence the log gives to another record."""
    by_seq = {seq: str(id) for seq, id in records}
    return sum(by_seq.get(message.seq) != json.loads(message.data)["id"] for message in stored)


def _effects(chaos: Installation, records: Sequence[Row], costs: Costs) -> None:
    effects = chaos.read_service("select seq, id from effect order by n")
    counts = Counter(id for _, id in effects)
    costs.handled["effects"] = len(effects)
    costs.lost["effects"] = len({id for _, id in records} - counts.keys())
    costs.doubled["effects"] = sum(count - 1 for count in counts.values())
    costs.out_of_order["effects"] = inversions([seq for seq, _ in effects])


def _webhooks(chaos: Installation, costs: Costs) -> None:
    delivered = delivered_events(chaos.requests)
    expected = {str(id) for (id,) in chaos.read(_WITH_WEBHOOK)}
    costs.handled["webhooks"] = sum(map(len, delivered.values()))
    costs.lost["webhooks"] = len(expected - delivered.keys())
    costs.doubled["webhook_keys"] = sum(len(set(keys)) - 1 for keys in delivered.values())
    costs.webhooks_repeated = sum(len(keys) - len(set(keys)) for keys in delivered.values())


def _staleness_and_alarms(chaos: Installation, costs: Costs) -> None:
    arrivals = [row for row in chaos.read(_DATAPOINTS) if row[1] == HOT_KEY]
    until: datetime = max(row[3] for row in arrivals)
    ((stale,),) = chaos.read(_STALE, until)
    costs.wrong["stale"] = stale
    expected = expected_alarms(arrivals)
    opened = {(owner, at) for owner, at in chaos.read(_OPENED) if at <= until}
    costs.handled["alarms"] = len(opened)
    costs.wrong["alarms"] = len({alarm for alarm in expected if alarm[1] <= until} ^ opened)


def expected_alarms(arrivals: Iterable[Row]) -> set[tuple[str, datetime]]:
    """The instants at which the alarm of each owner opens, from the arrivals of its series in order."""
    opened = set()
    for owner, group in groupby(arrivals, key=itemgetter(0)):
        since: datetime | None = None
        is_open = False
        for _, _, value, arrived_at in group:
            if since is not None and not is_open and arrived_at > since + HOLDS_FOR:
                opened.add((owner, since + HOLDS_FOR))
                is_open = True
            if value < HOT:
                since, is_open = None, False
            elif since is None:
                since = arrived_at
            if since is not None and not is_open and arrived_at == since + HOLDS_FOR:
                opened.add((owner, arrived_at))
                is_open = True
        if since is not None and not is_open:
            opened.add((owner, since + HOLDS_FOR))
    return opened


def inversions(numbers: Sequence[int]) -> int:
    """The neighbours of which the later one is smaller. Repetitions count as doubled, not here."""
    return sum(later < earlier for earlier, later in pairwise(numbers))


_DATAPOINTS = """
    select owner, key, value::int, arrived_at from tocsin.datapoint where owner like 'plant-%'
    order by owner, key, arrived_at, stream_seq, position
"""
_RECORDS = """
    select seq, id from tocsin.event union all select seq, id from tocsin.action_step
    union all select seq, id from tocsin.datapoint_calculated order by seq
"""
_WITH_WEBHOOK = "select id from tocsin.event where schedule = 'pulse-none' and type = 'schedule-fired'"
_STALE = "select count(*) from tocsin.datapoint_calculated where kind = 'stale' and ts <= %s"
_OPENED = "select owner, ts from tocsin.event where type = 'alarm-opened' and rule = 'hot'"
