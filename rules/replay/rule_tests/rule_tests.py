"""Rule tests: loads test documents, runs them and compares the log with the expectations.

Guarantee: problems of a test have the file and line, like those of rules. The live loader loads its
rules. Log entries and expectations are compared by instant, kind, name, owner and text, and every
difference is listed. Tests do not affect each other.

On failure: problems of the files raise `RulesInvalid`. A test that cannot continue, such as one
with an acknowledgement without an alarm, fails with the error.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rules.documents.load.files import read_files
from rules.documents.load.loader import LoadedDocuments, load_files
from rules.documents.load.problems import RuleProblem, RulesInvalid
from rules.documents.load.source import ReadDocuments, read_source
from rules.documents.load.validation import TESTS
from rules.replay.log import LogEntry
from rules.replay.rule_tests.world import World
from schemas.documents.rule_test import EXPECTATIONS, Expected, Given, RuleTestDocument, expand
from schemas.values.duration import format_duration, parse_duration
from tocsin.core.errors import InvalidInput

_ALWAYS_COMPLETE = ("opened", "resolved")
_WITHOUT_EFFECT = ("wait", "branch", "parallel")


class RuleTest(NamedTuple):
    file: str
    line: int
    document: RuleTestDocument


class ObservedEntry(NamedTuple):
    """A log entry in the terms of an expectation."""

    at: datetime
    kind: str
    name: str
    owner: str
    text: str
    is_initial: bool = False
    """The first health of a system. It need not be expected."""


@dataclass(frozen=True)
class RuleTestResult:
    test: RuleTest
    missing: tuple[Expected, ...]
    unexpected: tuple[ObservedEntry, ...]
    observed: tuple[ObservedEntry, ...]
    start: datetime
    error: str | None = None

    @property
    def passed(self) -> bool:
        return not (self.missing or self.unexpected or self.error)


def load_tests(paths: Sequence[Path]) -> list[RuleTest]:
    sources, problems = read_files(paths)
    read = ReadDocuments()
    for source in sources:
        read_source(source, read, TESTS)
    problems += read.problems
    if problems:
        raise RulesInvalid(problems)
    return [
        RuleTest(document.file, document.validated.key.line + 1, document.model)
        for document in read.documents
        if isinstance(document.model, RuleTestDocument)
    ]


class RuleTests:
    """Runs tests. Each set of rule files is loaded once."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[Path, ...], LoadedDocuments] = {}

    def run(self, test: RuleTest) -> RuleTestResult:
        start = _absolute_instant(test.document.start, "start")
        try:
            world = World((document.model for document in self._rules(test).documents), start)
            for given in test.document.given:
                _schedule(world, given, start)
            world.run_until(instant(test.document.until, start))
        except InvalidInput as error:
            return RuleTestResult(test, (), (), (), start, str(error))
        observed = (_observed(entry) for entry in world.log)
        return _compare(test, [entry for entry in observed if entry is not None], start)

    def _rules(self, test: RuleTest) -> LoadedDocuments:
        folder = Path(test.file).parent
        paths = tuple(folder / name for name in test.document.rules)
        if paths not in self._loaded:
            try:
                self._loaded[paths] = load_files(paths)
            except RulesInvalid as invalid:
                problem = RuleProblem(
                    test.file, test.line, 1, f"the rules of test {test.document.name!r} are invalid:"
                )
                raise RulesInvalid([problem, *invalid.problems]) from None
        return self._loaded[paths]


def instant(text: str, start: datetime) -> datetime:
    return _absolute_instant(text, "at") if text[4:5] == "-" else start + parse_duration(text)


def _absolute_instant(text: str, key: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise InvalidInput(f"{key} {text!r} is not an instant", remedy="write it as 2026-03-04T10:00:00Z")
    return parsed.astimezone(UTC)


def _schedule(world: World, given: Given, start: datetime) -> None:
    at = instant(given.at, start)
    if given.series is not None:
        assert given.values is not None
        assert given.every is not None
        for number, value in enumerate(expand(given.values)):
            if value is not None:
                world.at(
                    at + number * given.every,
                    "arrive",
                    owner=given.owner,
                    key=given.series,
                    value=value,
                    labels=given.labels,
                )
    elif given.event is not None:
        world.at(at, "emit", type=given.event, owner=given.owner, payload=given.payload)
    elif given.acknowledge is not None:
        world.at(at, "acknowledge", rule=given.acknowledge, owner=given.owner, who=given.by)
    elif given.snooze is not None:
        world.at(at, "snooze", rule=given.snooze, lasts=given.for_, owner=given.owner, who=given.by)
    elif given.unsnooze is not None:
        world.at(at, "unsnooze", rule=given.unsnooze, owner=given.owner, who=given.by)
    else:
        world.at(at, "fail", action=given.fail, step=given.step, times=given.times)


def _observed(entry: LogEntry) -> ObservedEntry | None:
    details = entry.details
    if entry.kind == "alarm":
        return ObservedEntry(entry.at, entry.state, entry.name, entry.owner, str(details.get("message", "")))
    if entry.kind == "step":
        if details["step_kind"] in _WITHOUT_EFFECT or entry.state != "completed":
            return None
        return ObservedEntry(entry.at, "sent", entry.name, entry.owner, _searched_text(details))
    if entry.kind == "run":
        text = str(details.get("reason", ""))
        return ObservedEntry(entry.at, f"run {entry.state}", entry.name, entry.owner, text)
    if entry.kind == "health":
        kind, is_initial = f"health {entry.state}", details["was"] is None
        return ObservedEntry(entry.at, kind, entry.name, entry.owner, _searched_text(details), is_initial)
    text = _searched_text(details.get("payload", details))
    return ObservedEntry(entry.at, entry.kind, entry.name, entry.owner, text)


def _searched_text(details: Any) -> str:
    """The text in which an expectation searches: subject and text, then the rest as JSON."""
    rest = {key: value for key, value in details.items() if key not in ("attempt", "step", "step_kind")}
    texts = [str(rest.pop(key)) for key in ("subject", "text") if rest.get(key)]
    return "\n".join([*texts, json.dumps(rest, ensure_ascii=False, default=str)])


def _compare(test: RuleTest, observed: Sequence[ObservedEntry], start: datetime) -> RuleTestResult:
    document = test.document
    unmatched = list(observed)
    missing: list[Expected] = []
    for expected in document.expect:
        match = next((entry for entry in unmatched if _matches(entry, expected, start)), None)
        if match is None:
            missing.append(expected)
        else:
            unmatched.remove(match)
    unexpected = tuple(_unexpected(document, unmatched))
    return RuleTestResult(test, tuple(missing), unexpected, tuple(observed), start)


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
    if "event" in complete and "event" not in document.nothing_else:
        types = {expected.name for expected in document.expect if expected.kind == "event"}
        unexpected = [entry for entry in unexpected if entry.kind != "event" or entry.name in types]
    return unexpected


def _matches(observed: ObservedEntry, expected: Expected, start: datetime) -> bool:
    return (
        observed.kind == expected.outcome
        and observed.name == expected.name
        and (expected.at is None or observed.at == instant(expected.at, start))
        and expected.owner in (None, observed.owner)
        and (expected.says is None or expected.says in observed.text)
    )


def since_start(at: datetime, start: datetime) -> str:
    """The time since the start of a test, such as `10m`."""
    return format_duration(at - start) if at >= start else at.isoformat()
