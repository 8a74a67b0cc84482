"""`python -m bench NAME [--json] [options]`, or `all`."""

from __future__ import annotations

import importlib
import json
import sys

from tocsin.core.logs import configure_logs
from tocsin.core.settings import Settings

NAMES = (
    "fire",
    "kinds",
    "append",
    "health",
    "calc",
    "burst",
    "lateness",
    "failover",
    "catch_up",
    "pending",
    "growth",
    "snapshot",
    "oracle",
    "engine",
    "backtest",
    "rules",
    "notify",
    "ingest",
    "watchdog",
    "check",
    "apply",
    "prune",
    "cdc",
    "consume",
    "live",
    "exactly-once",
    "chaos",
)
# Takes most of an hour, so `all` leaves it out.
ALONE = ("chaos",)


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--json"]
    if not arguments or arguments[0] not in (*NAMES, "all"):
        print(f"usage: python -m bench {'|'.join(NAMES)}|all [--json] [options]", file=sys.stderr)
        return 2
    # Logs go to stderr: stdout contains only the report.
    configure_logs(Settings(log_level="error"))
    chosen = [name for name in NAMES if name not in ALONE] if arguments[0] == "all" else [arguments[0]]
    for name in chosen:
        report = importlib.import_module(f"bench.{name.replace('-', '_')}").run(arguments[1:])
        if "--json" in sys.argv:
            print(json.dumps(report, default=str))
        else:
            _print_table(report)
    return 0


def _print_table(report: dict[str, object]) -> None:
    width = max(len(key) for key in report)
    for key, value in report.items():
        shown = (
            f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
        )
        print(f"{key:<{width}}  {shown}")
    print()


if __name__ == "__main__":
    sys.exit(main())
