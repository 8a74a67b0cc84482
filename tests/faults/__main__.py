"""`python -m tests.faults [--long] [--seed N]`: one seeded run; prints a JSON summary, exits 1 if anything was lost."""

from __future__ import annotations

import argparse
import dataclasses
import json
import secrets
import sys
import tempfile
from pathlib import Path

from tests.faults.plan import LONG, SHORT, run_plan
from tocsin.core.logs import configure_logs
from tocsin.core.settings import Settings
from tocsin.embedded import embedded_servers

LEAST_INSIDE_TRANSACTION = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--long", action="store_true", help="20,000 timers over 20 s, 28 faults")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    options = parser.parse_args()
    # Standard output is for the summary alone.
    configure_logs(Settings(log_level="warning"))
    sys.stderr.write(f"seed {options.seed}\n")
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(prefix="tocsin-", dir=memory if memory.is_dir() else None) as folder,
        embedded_servers(Path(folder) / "servers", durable=False) as servers,
    ):
        summary = run_plan(servers, Path(folder) / "clocks", options.seed, LONG if options.long else SHORT)
    sys.stdout.write(json.dumps(dataclasses.asdict(summary), indent=2) + "\n")
    enough = not options.long or summary.inside_transaction >= LEAST_INSIDE_TRANSACTION
    return 0 if summary.account.is_clean and enough else 1


if __name__ == "__main__":
    sys.exit(main())
