"""Known vulnerabilities of the locked packages, asked of the service that pip-audit uses.

Guarantee: exit code 1 if a locked package has a known vulnerability. Without a reachable service the
result is one line that says so, and exit code 0, or 1 with `--required`: checks must also run on a
machine without network.

Why pip-audit's own exit code is not enough: it is 0 for packages that it could not look up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.supply.lock_files import LOCK_FILES

_TIMEOUT_S = 60


@dataclass(frozen=True)
class Audit:
    """The outcome: what was found, and what could not be looked up."""

    vulnerable: tuple[str, ...]
    unknown: tuple[str, ...]
    checked: int
    problem: str = ""


def read_report(text: str) -> Audit:
    """The outcome from the JSON report of pip-audit."""
    try:
        packages: list[dict[str, Any]] = json.loads(text)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Audit((), (), 0, "pip-audit wrote no report")
    vulnerable = tuple(
        f"{package['name']} {package['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or '-'}"
        for package in packages
        for found in package.get("vulns", ())
    )
    unknown = tuple(package["name"] for package in packages if "skip_reason" in package)
    checked = len(packages) - len(unknown)
    return Audit(vulnerable, unknown, checked, "" if checked else "the service knows none of the packages")


def audit() -> Audit:
    command = [
        sys.executable,
        *("-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json"),
        *("--timeout=10", f"--requirement={LOCK_FILES[0].path}"),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return Audit((), (), 0, f"no answer within {_TIMEOUT_S} s")
    if not done.stdout.strip():
        last_line = (done.stderr.strip().splitlines() or ["pip-audit wrote nothing"])[-1]
        return Audit((), (), 0, last_line[:200])
    return read_report(done.stdout)


def report(outcome: Audit, *, required: bool) -> tuple[str, int]:
    """The lines to print, and the exit code."""
    if outcome.problem:
        line = f"NOT AUDITED: the vulnerability service could not be used ({outcome.problem})"
        return line, int(required)
    lines = [f"vulnerable: {line}" for line in outcome.vulnerable]
    if outcome.unknown:
        lines.append(f"NOT AUDITED: the service does not know {', '.join(outcome.unknown)}")
    lines.append(f"known vulnerabilities: {len(outcome.vulnerable)} in {outcome.checked} packages")
    return "\n".join(lines), int(bool(outcome.vulnerable) or (required and bool(outcome.unknown)))


def main(arguments: Sequence[str]) -> int:
    text, code = report(audit(), required="--required" in arguments)
    sys.stdout.write(f"{text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
