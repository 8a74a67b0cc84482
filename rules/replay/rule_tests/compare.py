"""Compares the log of a simulation with the expectations of its test.

Guarantee: log entries and expectations are compared by instant, kind, name, owner and text, and
every difference is listed. Pure: no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import isclose
from typing import Any, NamedTuple

from rules.replay.log import LogEntry
from rules.replay.rule_tests.instants import instant
from schemas.documents.rule_test import Expected, Only, RuleTestDocument
from schemas.documents.rule_test_keys import EXPECTATIONS

_ALWAYS_COMPLETE = ("opened", "resolved", "rejected")
_WITHOUT_EFFECT = ("wait", "branch", "parallel")
NOT_SENT = "not sent"
"""The kind of a step that completed without sending, because its channel is disabled."""
STEP_FAILED = "step failed"
"""The kind of a failed attempt. It is shown, and cannot be expected: `run` has the states of runs."""


class ObservedEntry(NamedTuple):
    """A log entry in the terms of an expectation."""

    at: datetime
    kind: str
    name: str
    owner: str
    text: str
    is_initial: bool = False
    """The first health of a system. It need not be expected."""
    value: float | bool | None = None
    """The value of a result of a calc_rule."""


class Differences(NamedTuple):
    missing: tuple[Expected, ...]
    unexpected: tuple[ObservedEntry, ...]


def observed_entries(log: Iterable[LogEntry]) -> list[ObservedEntry]:
    entries = (_observed(entry) for entry in log)
    return [entry for entry in entries if entry is not None]


def compare(document: RuleTestDocument, observed: Sequence[ObservedEntry], start: datetime) -> Differences:
    unmatched = list(observed)
    missing: list[Expected] = []
    for expected in document.expect:
        match = next((entry for entry in unmatched if _matches(entry, expected, start)), None)
        if match is None:
            missing.append(expected)
        else:
            unmatched.remove(match)
    return Differences(tuple(missing), tuple(_unexpected(document, unmatched)))


def _observed(entry: LogEntry) -> ObservedEntry | None:
    details = entry.details
    if entry.kind == "alarm":
        return ObservedEntry(entry.at, entry.state, entry.name, entry.owner, str(details.get("message", "")))
    if entry.kind == "step":
        return _observed_step(entry)
    if entry.kind == "run":
        text = str(details.get("reason", ""))
        return ObservedEntry(entry.at, f"run {entry.state}", entry.name, entry.owner, text)
    if entry.kind == "health":
        kind, is_initial = f"health {entry.state}", details["was"] is None
        return ObservedEntry(entry.at, kind, entry.name, entry.owner, _searched_text(details), is_initial)
    if entry.kind == "calculated":
        text = f"{details['value']} {_searched_text(details)}"
        return ObservedEntry(entry.at, entry.kind, entry.name, entry.owner, text, value=details["value"])
    text = _searched_text(details.get("payload", details))
    return ObservedEntry(entry.at, entry.kind, entry.name, entry.owner, text)


def _observed_step(entry: LogEntry) -> ObservedEntry | None:
    details = entry.details
    if entry.state in ("failed", "timedout"):
        # A step without a name is named by its number.
        step = details["step_kind"] if str(details["step"]).isdigit() else details["step"]
        text = f"{step}: {details.get('error', '')}"
        return ObservedEntry(entry.at, STEP_FAILED, entry.name, entry.owner, text)
    if details.get("sent") is False:
        return ObservedEntry(entry.at, NOT_SENT, entry.name, entry.owner, str(details.get("reason", "")))
    if details["step_kind"] == "dispatch":
        # The message is sent when the step begins to wait. Its report is no second message.
        is_sent = entry.state in ("paused", "completed") and "subject" in details
    else:
        is_sent = entry.state == "completed" and details["step_kind"] not in _WITHOUT_EFFECT
    if not is_sent:
        return None
    return ObservedEntry(entry.at, "sent", entry.name, entry.owner, _searched_text(details))


def _searched_text(details: Any) -> str:
    """The text in which an expectation searches: subject and text, then the rest as JSON."""
    rest = {key: value for key, value in details.items() if key not in ("attempt", "step", "step_kind")}
    texts = [str(rest.pop(key)) for key in ("subject", "text") if rest.get(key)]
    return "\n".join([*texts, json.dumps(rest, ensure_ascii=False, default=str)])


def _unexpected(document: RuleTestDocument, unmatched: Sequence[ObservedEntry]) -> list[ObservedEntry]:
    """The entries without an expectation, of the kinds whose expectations are complete."""
    complete = {*_ALWAYS_COMPLETE, *document.nothing_else, *(expected.kind for expected in document.expect)}
    unexpected = [entry for entry in unmatched if entry.kind in complete and entry.kind in EXPECTATIONS]
    if "run" in document.nothing_else:
        runs = {expected.name for expected in document.expect if expected.kind == "run"}
        unexpected += (
            entry for entry in unmatched if entry.kind.startswith("run ") and entry.name not in runs
        )
    if "health" in complete:
        unexpected += (
            entry for entry in unmatched if entry.kind.startswith("health ") and not entry.is_initial
        )
    if "calculated" in complete and "calculated" not in document.nothing_else:
        # There is one in every window, so only the expected instants are checked.
        unexpected = [entry for entry in unexpected if entry.kind != "calculated"]
    if "event" in complete and "event" not in document.nothing_else:
        types = {expected.name for expected in document.expect if expected.kind == "event"}
        unexpected = [entry for entry in unexpected if entry.kind != "event" or entry.name in types]
    return [entry for entry in unexpected if document.only is None or _is_restricted_to(entry, document.only)]


def _is_restricted_to(entry: ObservedEntry, only: Only) -> bool:
    kind = entry.kind.split(" ")[0]
    return (
        (not only.kinds or kind in only.kinds)
        and (not only.action or (kind in ("sent", "run") and entry.name in only.action))
        and (not only.rule or (kind in ("opened", "changed", "resolved") and entry.name in only.rule))
        and (not only.owner or entry.owner in only.owner)
    )


def _matches(observed: ObservedEntry, expected: Expected, start: datetime) -> bool:
    return (
        observed.kind == expected.outcome
        and observed.name == expected.name
        and (expected.at is None or observed.at == instant(expected.at, start))
        and expected.owner in (None, observed.owner)
        and (expected.says is None or expected.says in observed.text)
        and (expected.value is None or _is_equal(observed.value, expected.value))
    )


def _is_equal(observed: float | bool | None, expected: float | bool) -> bool:
    if observed is None or isinstance(observed, bool) != isinstance(expected, bool):
        return False
    return isclose(observed, expected, rel_tol=1e-9, abs_tol=1e-12)
