"""A short run of the chaos matrix: some faults after each other, and nothing is lost, doubled or wrong."""

from __future__ import annotations

import os

import pytest

from tests.faults.chaos.cell import CellResult, finish, inflict, wait_until_loaded
from tests.faults.chaos.installation import Layout, installation
from tests.faults.chaos.matrix import FAULTS

SEED = int(os.environ.get("TOCSIN_FAULT_SEED", "20260302"))
CELLS = (
    ("kill", "clock"),
    ("terminate-backends", "worker"),
    ("cut-postgres", "cdc"),
    ("kill", "consumer"),
)
SECONDS = 2.0


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
    assert result.problems == []
    assert result.costs.is_clean, result.costs
    assert all(all(evidence.values()) for evidence in happened.values()), happened
    assert all(
        result.costs.handled[what] for what in ("datapoints", "fires", "records", "effects", "webhooks")
    )
