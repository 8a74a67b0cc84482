"""A matrix of faults: what each costs a whole installation under load, and how long it takes to recover.

Each cell has an installation of its own (two clocks, two publishers, two workers, a consumer with an
inbox, a producer, a receiver of webhooks), one fault, and an account of everything that was
acknowledged or committed. `--write` puts the row of each cell into the table of a page.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from tests.faults.chaos.cell import CellResult, run_cell
from tests.faults.chaos.matrix import FAULTS
from tests.faults.chaos.page import table, write_rows


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench chaos")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--fault", action="append", choices=[fault.name for fault in FAULTS])
    parser.add_argument("--part", action="append", help="clock, cdc, worker, consumer, producer or all")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of a fault that lasts")
    parser.add_argument("--write", type=Path, help="a page in whose table the rows of the cells are replaced")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", file=sys.stderr, flush=True)
    results = []
    for fault in FAULTS:
        for part in fault.parts:
            if options.fault and fault.name not in options.fault:
                continue
            if options.part and part not in options.part:
                continue
            results.append(run_cell(fault, part, options.seed, options.seconds))
            _print(results[-1])
            if options.write is not None:
                write_rows(options.write, results)
    return _report(results, options.seed)


def _report(results: list[CellResult], seed: int) -> dict[str, object]:
    ran = [result for result in results if not result.skipped]
    failed = [f"{result.fault} {result.part}" for result in ran if result.problems]
    return {
        "name": "chaos",
        "seed": seed,
        "cells": len(ran),
        "skipped": len(results) - len(ran),
        "failed": failed,
        "table": table(results),
        "results": [result.as_json() for result in results],
        "ours": len(failed),
        "limit": 0,
        "ratio": len(failed) / max(1, len(ran)),
        "goal": "nothing lost, doubled, out of order or wrong, and every fault really happened (ratio 0)",
    }


def _print(result: CellResult) -> None:
    outcome = result.skipped or "; ".join(line[:600] for line in result.problems) or "clean"
    text = f"{result.fault} {result.part}: {outcome} ({result.seconds:.0f} s, back in {result.recovery.seconds} s)"
    print(text, file=sys.stderr, flush=True)
