"""Series whose labels alternate are listed by the doctor."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.doctor.label_check import AlternatingSeries, check_labels, label_findings


async def _store(connection: Connection, owner: str, cores: str) -> datetime:
    """One datapoint for each character, with it as the label `core`. Returns the time of the database."""
    (row,) = await all_rows(connection, "select tocsin.instant() as now")
    now = row["now"]
    assert isinstance(now, datetime)
    await connection.execute(
        "select tocsin.extend_datapoints(%s, %s)", ((now - timedelta(days=1)).date(), now.date())
    )
    for number, core in enumerate(cores):
        await connection.execute(
            "insert into tocsin.datapoint (arrived_at, stream_seq, position, owner, key, ts, value, labels)"
            " values (%(at)s, %(seq)s, 0, %(owner)s, 'cpu.temp', %(at)s, '1', %(labels)s)",
            {
                "at": now - timedelta(seconds=60 - number),
                "seq": len(owner) * 100 + number,
                "owner": owner,
                "labels": json.dumps({"core": core, "site": "ams"}),
            },
        )
    return now


async def test_a_series_that_two_sources_share_is_listed_with_the_label_to_declare(
    connection: Connection,
) -> None:
    now = await _store(connection, "web", "0101010")
    assert await check_labels(connection, now) == []
    now = await _store(connection, "db", "01010101")
    (finding,) = await check_labels(connection, now)
    assert finding.state == "info"
    assert finding.text == "the labels of 1 series alternate: cpu.temp of db (core)"
    assert "dimensions: [core]" in finding.remedy
    assert await check_labels(connection, now + timedelta(hours=2)) == []


async def test_labels_that_change_once_or_always_stay_the_same_are_not_listed(connection: Connection) -> None:
    await _store(connection, "moved", "0000000011111111")
    now = await _store(connection, "counted", "0123456789abcdef")
    assert await check_labels(connection, now) == []


def test_only_the_most_frequent_series_are_named() -> None:
    series = [AlternatingSeries(f"o{number}", "k", 9, {"a": "1"}, {"a": "2"}) for number in range(4)]
    (finding,) = label_findings(series)
    assert finding.text == "the labels of 4 series alternate: k of o0 (a), k of o1 (a), k of o2 (a), ..."
