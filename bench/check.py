"""`tocsin check` on 1,000 documents of all kinds.

Measured are the whole command, and the load compared with the least work that it could be.

The limit is the work that cannot be left out: reading the YAML into nodes, validating each document
with its model, compiling each condition. Tocsin also keeps the position of every key, checks names,
recurrences, templates and literals, and reports all problems. Processor time is measured, so that a
busy machine gives the same numbers.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from cel_expr_python import cel

from rules.documents.load import load_files
from rules.language.cel.environment import event_environment
from rules.language.cel.series import series_environment
from schemas.documents import DOCUMENT_KINDS, ActionRuleDocument, EventRuleDocument

_GOAL_S = 1.0
_REPEATS = 3
_CRONS = ("0 8 * * MON-FRI", "*/15 * * * *", "30 2 1 * *", "@daily", "0 22 * * 5")


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench check")
    parser.add_argument("--documents", type=int, default=1000)
    options = parser.parse_args(arguments)
    text = "---\n".join(document(number) for number in range(options.documents))
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as folder:
        file = Path(folder) / "rules.yaml"
        file.write_text(text, encoding="utf-8")
        assert len(load_files([file]).documents) == options.documents
        ours_s = _least(lambda: load_files([file]))
        command_s = _command(file)
    limit_s = _least(lambda: _bare(text))
    return {
        "name": "check",
        "documents": options.documents,
        "command_s": command_s,
        "ours_s": ours_s,
        "limit_s": limit_s,
        "ours": options.documents / ours_s,
        "limit": options.documents / limit_s,
        "ratio": limit_s / ours_s,
        "goal": f"the whole command below {_GOAL_S:g} s of processor time",
        "reached": command_s < _GOAL_S,
    }


def document(number: int) -> str:
    """A tenth each: schedules by cron and rrule, rules with several conditions, actions, types."""
    return _DOCUMENTS[number % len(_DOCUMENTS)](number)


def _cron(n: int) -> str:
    return (
        f"schedule:\n  name: cron-{n}\n  cron: '{_CRONS[n // 10 % 5]}'\n  tz: America/New_York\n  spread: 30s\n"
        f"  payload: {{report: digest, number: {n}, to: [ops, night]}}\n"
    )


def _rrule(n: int) -> str:
    return (
        f"schedule:\n  name: rrule-{n}\n  rrule: FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0\n"
        f"  dtstart: '2026-01-01T00:00:00'\n  tz: Europe/London\n  catch_up: all\n  window: 6h\n"
    )


def _hot(n: int) -> str:
    return (
        f"event_rule:\n  name: hot-{n}\n  datapoint: dsp.{n}.temperature\n"
        f"  fire: 'value > {n % 90}.5 && labels.zone == \"north\"'\n"
        f'  clear: value < {n % 90}.0\n  for: 10m\n  severity: high\n  where: owner.startsWith("plant-")\n'
    )


def _above(n: int) -> str:
    return f"event_rule:\n  name: above-{n}\n  datapoint: disk.{n}.used\n  above: {n % 90}\n  for: 5m\n"


def _window(n: int) -> str:
    return (
        f"event_rule:\n  name: window-{n}\n  datapoint: net.{n}.errors\n  fire: value > 10.0\n"
        f"  window: {{over: 10m, reduce: rate}}\n  cooldown: 1h\n"
    )


def _when(n: int) -> str:
    return (
        f"action_rule:\n  name: when-{n}\n  on: event\n  action: tell-{n - n % 10 + 8}\n"
        f'  when: \'origin == "scheduled" && schedule == "cron-{n - n % 10}" && payload.number > {n}\'\n'
    )


def _matching(n: int) -> str:
    return (
        f"action_rule:\n  name: matching-{n}\n  on: event\n  action: tell-{n - n % 10 + 8}\n"
        f'  when: \'severity >= high && owner.matches("^plant-{n}-[a-z]+$")'
        ' && ts > timestamp("2026-01-01T00:00:00Z")\'\n'
    )


def _listening(n: int) -> str:
    return (
        f'event_rule:\n  name: link-{n}\n  event: link-*\n  fire: type == "link-down" && payload.port == {n}\n'
        f'  clear: type == "link-up" && payload.port == {n}\n'
    )


def _action(n: int) -> str:
    return (
        f"action:\n  name: tell-{n}\n  publish:\n    subject: 'plants.{{{{ owner }}}}.noted'\n"
        f"    payload: {{text: '{{{{ rule }}}} of {{{{ owner }}}} at {{{{ ts }}}}', number: {n}}}\n"
    )


def _type(n: int) -> str:
    return f"datapoint_type:\n  name: type-{n}\n  key: dsp.{n}.speed\n  unit: rpm\n  interval: 30s\n  on_stale: alarm\n"


_DOCUMENTS = (_cron, _rrule, _hot, _above, _window, _when, _matching, _listening, _action, _type)


def _bare(text: str) -> None:
    events, series = event_environment(), series_environment(None)
    for node in yaml.load_all(text, yaml.CSafeLoader):
        ((kind, body),) = node.items()
        # YAML 1.1 reads the key `on` as true.
        model = DOCUMENT_KINDS[kind].model_validate(
            {"on" if key is True else key: value for key, value in body.items()}
        )
        if isinstance(model, ActionRuleDocument):
            _compile(events, model.when)
        elif isinstance(model, EventRuleDocument):
            _compile(series if model.event is None else events, model.fire, model.clear)


def _compile(environment: cel.Env, *conditions: str | None) -> None:
    for condition in conditions:
        if condition is not None:
            environment.compile(condition)


def _least(work: Callable[[], object]) -> float:
    """Seconds of processor time of the best of a few runs."""
    taken = []
    for _ in range(_REPEATS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def _command(file: Path) -> float:
    taken = []
    for _ in range(_REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", "from tocsin.cli import main; main()", "check", str(file)]
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)
