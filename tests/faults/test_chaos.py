"""A short run of the chaos matrix: some faults after each other, and nothing is lost, doubled or wrong."""

from __future__ import annotations

import os

import psycopg
import pytest

from tests.faults.chaos.account import Costs, account
from tests.faults.chaos.cell import CellResult, finish, inflict, wait_until_loaded
from tests.faults.chaos.installation import Installation, Layout, installation
from tests.faults.chaos.matrix import FAULTS

SEED = int(os.environ.get("TOCSIN_FAULT_SEED", "20260302"))
CELLS = (
    ("kill", "clock"),
    ("terminate-backends", "worker"),
    ("cut-postgres", "cdc"),
    ("kill", "consumer"),
)
SECONDS = 2.0


def damage(chaos: Installation) -> Costs:
    """Remove or repeat one of each: an account that does not notice it proves nothing."""
    with psycopg.connect(chaos.direct.postgres, autocommit=True) as connection:
        connection.execute(
            "delete from tocsin.datapoint where owner = 'plant-3' and key = 'temp.1' and value = '2'"
        )
        connection.execute(
            "delete from tocsin.event where seq ="
            " (select min(seq) from tocsin.event where schedule = 'pulse' and type = 'schedule-fired')"
        )
    with psycopg.connect(chaos.service_database, autocommit=True) as connection:
        connection.execute("delete from effect where seq = (select max(seq) from effect)")
        connection.execute("insert into effect (seq, id) select seq, id from effect where seq = 3")
    requests = chaos.requests.requests
    requests[:] = [request for request in requests if request.body != requests[-1].body]
    return account(chaos, chaos.load.acknowledged)


@pytest.mark.timeout(600)
def test_an_installation_loses_and_doubles_nothing_under_faults_of_its_parts() -> None:
    faults = {fault.name: fault for fault in FAULTS}
    result = CellResult("several", "several", SEED)
    happened = {}
    with installation(Layout()) as chaos:
        wait_until_loaded(chaos)
        for name, part in CELLS:
            inflict(chaos, faults[name], part, SEED, SECONDS, result)
            happened[name, part] = dict(result.happened)
        finish(chaos, result)
        damaged = damage(chaos)
    assert result.problems == []
    assert (damaged.lost["datapoints"], damaged.lost["effects"], damaged.doubled["effects"]) == (1, 1, 1)
    assert (damaged.lost["webhooks"], damaged.lost["occurrences"], damaged.wrong["gaps"]) == (1, 1, 1)
    assert result.costs.is_clean, result.costs
    assert all(all(evidence.values()) for evidence in happened.values()), happened
    assert all(
        result.costs.handled[what] for what in ("datapoints", "fires", "records", "effects", "webhooks")
    )
