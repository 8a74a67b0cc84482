"""The signals of an installation during a fault: the red lines of the doctor, and the metrics.

A signal names the cause if a pattern of the fault matches it. The doctor runs as an operator would run
it, with the addresses of the servers and not through the broken links.
"""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from tests.faults.chaos.installation import SERVICES, Installation

_ANSWER_S = 3.0
_DOCTOR_S = 60.0
_LEADER = re.compile(r'^tocsin_leader\{role="(\w+)"\} 1', re.MULTILINE)
# Metrics of the instance that an alert would compare with a limit, and the limit.
_LIMITS = {
    "tocsin_timers_overdue_seconds": 3.0,
    "tocsin_log_publish_lag_seconds": 3.0,
    "tocsin_lane_behind_seconds": 5.0,
    "tocsin_stream_problem": 0.0,
    "tocsin_timers_parked": 0.0,
    "tocsin_series_stale": 0.0,
    "tocsin_clock_offset_seconds": 5.0,
}


def doctor_signals(chaos: Installation) -> list[str]:
    """The red lines: `subject: text`."""
    try:
        answer = chaos.run_command("doctor", "--json", within=_DOCTOR_S)
        findings = json.loads(answer.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        return [f"doctor: {type(error).__name__}"]
    return [f"{line['subject']}: {line['text']}" for line in findings if line["state"] == "red"]


def metric_signals(chaos: Installation) -> list[str]:
    """The processes that do not answer or are not healthy, roles without a leader, and values over a limit."""
    with ThreadPoolExecutor(len(SERVICES)) as threads:
        health = dict(
            zip(SERVICES, threads.map(lambda name: _get(chaos, name, "healthz"), SERVICES), strict=True)
        )
        metrics = dict(
            zip(SERVICES, threads.map(lambda name: _get(chaos, name, "metrics"), SERVICES), strict=True)
        )
    found = [f"{name} is down" for name, answer in health.items() if answer is None]
    found += [f"{name}: {answer.strip()}" for name, answer in health.items() if answer not in (None, "ok\n")]
    texts = [text for text in metrics.values() if text is not None]
    leaders = {role for text in texts for role in _LEADER.findall(text)}
    found += [f"no leader: {role}" for role in ("clock", "cdc") if role not in leaders]
    if any("tocsin_database_up 0" in text for text in texts):
        found.append("tocsin_database_up 0")
    return found + _over_limits(texts)


def leader(chaos: Installation, role: str) -> str | None:
    """The process that leads; None if none does."""
    for name in chaos.names_of(role):
        if role in _LEADER.findall(_get(chaos, name, "metrics") or ""):
            return name
    return None


def is_healthy(chaos: Installation, name: str) -> bool:
    return health_of(chaos, name) == "ok"


def health_of(chaos: Installation, name: str) -> str:
    """What `/healthz` of the process answers; empty without an answer."""
    return (_get(chaos, name, "healthz") or "").strip()


def _over_limits(texts: list[str]) -> list[str]:
    highest: dict[str, float] = {}
    for text in texts:
        for line in text.splitlines():
            name = line.split("{")[0].split(" ")[0]
            if name in _LIMITS:
                highest[name] = max(highest.get(name, 0.0), abs(float(line.rsplit(" ", 1)[1])))
    return [f"{name} {value:g}" for name, value in highest.items() if value > _LIMITS[name]]


def _get(chaos: Installation, name: str, path: str) -> str | None:
    url = f"http://127.0.0.1:{chaos.processes.ports[name]}/{path}"
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_S) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return None
