"""Workers that run and cannot work: the doctor shows the reason and its remedy."""

from __future__ import annotations

import psycopg

from tests.cli.conftest import CommandLine
from tests.metrics.scrapes import process
from tests.wait import eventually_sync
from tocsin.core.settings import Settings


def test_a_worker_that_cannot_start_is_reported_with_its_reason(
    tocsin: CommandLine, settings: Settings
) -> None:
    with psycopg.connect(settings.postgres, autocommit=True) as db:
        db.execute(
            "insert into tocsin.lane_partition (lane, partition) select 'data', n from generate_series(0, 7) n"
        )
    found = {check["subject"]: check for check in tocsin("doctor", "--json", exit_code=1).json}
    assert found["lane data"]["remedy"] == (
        "start a worker with `tocsin run worker`, or `tocsin up`; if one runs, its log names what it waits for"
    )
    with process(settings, "cdc"), process(settings, "worker", TOCSIN_DATA_PARTITIONS="4"):

        def is_reported() -> bool:
            found.update({check["subject"]: check for check in tocsin.answer("doctor", "--json").json})
            return "cannot work" in found["lane data"]["text"]

        eventually_sync(is_reported, "the doctor reports the worker", within=60)
    assert found["lane data"]["text"].endswith(
        "; a worker cannot work: lanes: TOCSIN_DATA_PARTITIONS=4, but the data lane was created with 8"
    )
    assert found["lane data"]["remedy"] == "set it to 8"
    assert found["lane record"]["remedy"] == "set it to 8"
    assert "tocsin_workers 0\n" in tocsin("metrics").out, "it takes no part"
