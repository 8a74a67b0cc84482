"""The table of a run of `bench chaos`, and the page that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.faults.chaos.cell import CellResult
from tests.faults.chaos.matrix import FAULTS

_BEGIN = "<!-- measured: begin -->"
_END = "<!-- measured: end -->"
_HEAD = (
    "| fault | part | lost | doubled | out of order | wrong | webhooks repeated | recovery | doctor | metrics "
    "| operator |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def table(results: Sequence[CellResult]) -> str:
    return "\n".join([_HEAD, *(_row(result) for result in results)])


def _row(result: CellResult) -> str:
    if result.not_measured:
        return f"| {result.fault} | {result.part} | {result.not_measured} |||||||||"
    costs = result.costs
    cells = [
        result.fault,
        result.part,
        *(_counts(getattr(costs, what)) for what in ("lost", "doubled", "out_of_order", "wrong")),
        str(costs.webhooks_repeated),
        "never" if result.recovery.seconds < 0 else f"{result.recovery.seconds:.1f} s",
        _named(result.doctor_named),
        _named(result.metrics_named),
        ", ".join(f"`{act}`" for act in result.operator) or "–",
    ]
    return f"| {' | '.join(cells)} |"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count) or "0"


def _named(named: bool | None) -> str:
    return "–" if named is None else "yes" if named else "no"


def write_rows(page: Path, results: Sequence[CellResult]) -> None:
    """Replace the rows of these cells in the page, and keep the rows of all others."""
    before, _, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    measured, _, after = rest.partition(_END)
    rows = {_key(line): line for line in measured.splitlines() if line.startswith("| ") and line not in _HEAD}
    rows |= {(result.fault, result.part): _row(result) for result in results}
    cells = [(fault.name, part) for fault in FAULTS for part in fault.parts]
    lines = [_HEAD, *(rows[cell] for cell in cells if cell in rows)]
    page.write_text(f"{before}{_BEGIN}\n\n" + "\n".join(lines) + f"\n\n{_END}{after}", encoding="utf-8")


def _key(row: str) -> tuple[str, str]:
    _, fault, part, *_ = (column.strip() for column in row.split("|"))
    return fault, part
