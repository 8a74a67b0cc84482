"""Builds the text and the JSON of a plan, for `tocsin plan` and the prompt of `tocsin apply`.

    + action_rule night-page
        when: "severity >= high"
    ~ schedule daily-digest
        cron: "0 8 * * *" -> "0 9 * * *"
        next fires: Mon 2026-03-02 09:00:00 EST, Tue 2026-03-03 09:00:00 EST, Wed 2026-03-04 09:00:00 EST
        instead of: Mon 2026-03-02 08:00:00 EST, Tue 2026-03-03 08:00:00 EST, Wed 2026-03-04 08:00:00 EST
    - event_rule dsp-hot
        resolves the alarm of plant-7 (since 2026-03-02 07:10:00Z): rule-removed
    1 added, 1 changed, 1 removed, 12 unchanged

Guarantees: every difference is shown in full; a value that does not fit on one line is shown below
its key, line by line. No text of a document can move the cursor: control characters are escaped.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from difflib import ndiff
from typing import Any

import yaml

from rules.apply.diff import ABSENT, FieldDifference
from rules.apply.maintenance import NextWindows
from rules.apply.plan import ApplyPlan, DocumentChange
from rules.apply.preview import AlarmEnd, Preview
from rules.apply.schedules import NextFires
from schemas.values.rule_ref import RuleRef
from tocsin.cli.output import json_text, local_text, printable, utc_text

_SIGNS = {"added": "+", "changed": "~", "removed": "-"}
_ONE_LINE = 100


def plan_lines(preview: Preview) -> Iterator[str]:
    """The changes in the order of the files, each with its consequences; then the counts."""
    shown: set[AlarmEnd] = set()
    for change in preview.plan.effective:
        yield f"{_SIGNS[change.outcome]} {change.kind} {change.name}"
        ends = [end for end in preview.alarms if _is_of(end, change)]
        shown.update(ends)
        yield from _indented([*_content(change), *_consequences(change, preview), *map(_end_text, ends)])
    yield from map(_end_text, (end for end in preview.alarms if end not in shown))
    yield counts_text(preview.plan)


def plan_json(preview: Preview) -> dict[str, Any]:
    return {
        "changes": [_change_json(change, preview) for change in preview.plan.effective],
        "alarms": [asdict(end) for end in preview.alarms],
        "counts": preview.plan.counts(),
    }


def counts_text(plan: ApplyPlan) -> str:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in plan.counts().items())
    return counts if plan.effective else f"no changes: {counts or 'no documents'}"


def _change_json(change: DocumentChange, preview: Preview) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": change.kind, "name": change.name, "outcome": change.outcome}
    if change.outcome == "changed":
        shown["differences"] = [difference.as_json() for difference in change.differences]
    elif change.outcome == "added":
        shown["document"] = change.after
    if change.key in preview.fires:
        fires = preview.fires[change.key]
        shown["fires"] = {"old": fires.before, "new": fires.after}
    if change.key in preview.windows:
        shown["windows"] = [window._asdict() for window in preview.windows[change.key].windows]
    if change.key in preview.runs:
        shown["actions"] = preview.runs[change.key]._asdict()
    return shown


def _content(change: DocumentChange) -> Iterator[str]:
    if change.outcome == "changed":
        for difference in change.differences:
            yield from _difference_lines(difference)
    elif change.model is not None and change.outcome == "added":
        written = change.model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for key, value in written.items():
            if key != "name":
                yield from _value_lines(key, value)


def _difference_lines(difference: FieldDifference) -> Iterator[str]:
    path, old, new = difference
    if old is ABSENT or new is ABSENT:
        yield from _value_lines(f"{'+' if old is ABSENT else '-'} {path}", new if old is ABSENT else old)
        return
    line = f"{path}: {_compact(old)} -> {_compact(new)}"
    if len(line) <= _ONE_LINE and not any(_has_lines(value) for value in (old, new)):
        yield line
        return
    yield f"{path}:"
    for line in ndiff(_lines(old), _lines(new)):
        if not line.startswith("?"):
            yield f"  {line}".rstrip()


def _value_lines(key: str, value: Any) -> Iterator[str]:
    line = f"{key}: {_compact(value)}"
    if len(line) <= _ONE_LINE and not _has_lines(value):
        yield line
    else:
        yield f"{key}:"
        yield from _indented(_lines(value), "  ")


def _lines(value: Any) -> list[str]:
    """A text by its lines, one long line of CEL by its clauses, and anything else as YAML."""
    if not isinstance(value, str):
        text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_ONE_LINE)
        return [printable(line) for line in text.splitlines()]
    if not _has_lines(value):
        value = value.replace(" && ", "\n&& ").replace(" || ", "\n|| ")
    return [printable(line) for line in value.splitlines()]


def _has_lines(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value.strip("\n")


def _compact(value: Any) -> str:
    return printable(json_text(value))


def _consequences(change: DocumentChange, preview: Preview) -> Iterator[str]:
    fires = preview.fires.get(change.key)
    if fires is not None:
        yield f"next fires: {_fires_text(fires, fires.after)}"
        if change.outcome == "changed" and fires.before != fires.after:
            yield f"instead of: {_fires_text(fires, fires.before)}"
    windows = preview.windows.get(change.key)
    if windows is not None:
        yield f"next windows: {_windows_text(windows)}"
    runs = preview.runs.get(change.key)
    if runs is not None and runs.cancelled:
        yield f"cancels runs that have not begun: {runs.cancelled}"
    if runs is not None and runs.finishing:
        yield f"runs in progress, which finish with the old rules: {runs.finishing}"


def _fires_text(fires: NextFires, instants: Sequence[datetime]) -> str:
    return ", ".join(local_text(instant, fires.tz) for instant in instants) or "never"


def _windows_text(next_windows: NextWindows) -> str:
    tz, windows = next_windows
    texts = (f"{local_text(begin, tz)} to {local_text(end, tz)}" for begin, end in windows)
    return ", ".join(texts) or "none"


def _end_text(end: AlarmEnd) -> str:
    verb = "resolves the alarm" if end.outcome == "resolved" else "drops the pending alarm"
    of_owner = f" of {printable(end.owner)}" if end.owner else ""
    return f"{verb}{of_owner} (since {utc_text(end.since)}): {end.reason}"


def _is_of(end: AlarmEnd, change: DocumentChange) -> bool:
    if change.kind == "datapoint_type":
        return end.event_rule == str(RuleRef("stale", change.name))
    return (change.kind, change.name) == ("event_rule", end.event_rule)


def _indented(lines: Iterable[str], by: str = "    ") -> Iterator[str]:
    return (f"{by}{line}" for line in lines)
