"""The page with the measured table: it describes every fault, and a run replaces only its own rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.faults.chaos.account import Costs
from tests.faults.chaos.cell import CellResult
from tests.faults.chaos.matrix import FAULTS
from tests.faults.chaos.page import write_rows
from tests.faults.chaos.vitals import Recovery

PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"


def test_the_page_describes_every_fault() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [
        fault.name for fault in FAULTS if f"| {fault.name} | {_sentence(fault.description)} |" not in text
    ]
    assert missing == []


def _sentence(description: str) -> str:
    return f"{description[0].upper()}{description[1:]}."


def test_a_run_replaces_the_rows_of_its_cells_and_keeps_the_others(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- measured: begin -->\n\n<!-- measured: end -->\nafter\n", encoding="utf-8")
    handled = {"records": 10}
    clean = CellResult(
        "kill",
        "clock",
        1,
        happened={"killed": 1},
        costs=Costs(handled=handled),
        recovery=Recovery(1.25, {}),
    )
    failed = CellResult("kill", "cdc", 1, problems=["TimeoutError: no leader\nmore"])
    skipped = CellResult("slow-disk", "nats", 1, skipped="no such disk")
    write_rows(page, [skipped, clean, failed])
    lossy = replace(clean, costs=Costs(lost={"records": 2, "effects": 0}, handled=handled), doctor_named=True)
    write_rows(page, [lossy])
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        "| kill | clock | 2 records | 0 | 0 | 0 | 0 | 1.2 s | yes | – | – |",
        "| kill | cdc | not measured: TimeoutError: no leader |||||||||",
        "| slow-disk | nats | skipped: no such disk |||||||||",
    ]
    assert page.read_text(encoding="utf-8").startswith("before\n")
    assert page.read_text(encoding="utf-8").endswith("-->\nafter\n")
