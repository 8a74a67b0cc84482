"""Rule tests: YAML in, verdicts out.

Guarantee: a test is read with places, like rules; its rules are loaded by the live loader; what happens is compared by
instant, kind, name, owner and text, and every difference is listed. Tests do not see each other.

On failure: problems of the files are `RulesInvalid`; a test that cannot go on (an acknowledgement without an alarm)
fails with that sentence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rules.documents.load.files import read_files
from rules.documents.load.loader import Loaded, load_files
from rules.documents.load.problems import Problem, RulesInvalid
from rules.documents.load.source import Read, read_source
from rules.documents.load.validation import TESTS
from rules.replay.rule_tests.log import Happening
from rules.replay.rule_tests.world import World
from schemas.documents.rule_test import EXPECTATIONS, Expected, Given, RuleTestDocument, expand
from schemas.values.duration import format_duration, parse_duration
from tocsin.core.errors import InvalidInput

_ALARMS = ("opened", "resolved")


class RuleTest(NamedTuple):
    file: str
    line: int
    document: RuleTestDocument


class Seen(NamedTuple):
    """A happening, in the words of an expectation."""

    at: datetime
    kind: str
    name: str
    owner: str
    says: str
    begins: bool = False
    """The first word about a system: it need not be expected."""


@dataclass(frozen=True)
class Verdict:
    test: RuleTest
    missing: tuple[Expected, ...]
    unexpected: tuple[Seen, ...]
    seen: tuple[Seen, ...]
    start: datetime
    error: str | None = None

    @property
    def passed(self) -> bool:
        return not (self.missing or self.unexpected or self.error)


def load_tests(paths: Sequence[Path]) -> list[RuleTest]:
    sources, problems = read_files(paths)
    read = Read()
    for source in sources:
        read_source(source, read, TESTS)
    problems += read.problems
    if problems:
        raise RulesInvalid(problems)
    return [
        RuleTest(one.file, one.document.key.line + 1, one.document.model)
        for one in read.placed
        if isinstance(one.document.model, RuleTestDocument)
    ]


class RuleTests:
    """Runs tests; each set of rules files is loaded once."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[Path, ...], Loaded] = {}

    def run(self, test: RuleTest) -> Verdict:
        start = _absolute(test.document.start, "start")
        try:
            world = World((one.model for one in self._rules(test).documents), start)
            for given in test.document.given:
                _give(world, given, start)
            world.run_until(instant(test.document.until, start))
        except InvalidInput as error:
            return Verdict(test, (), (), (), start, str(error))
        seen = tuple(_seen(one) for one in world.happenings)
        return _compared(test, [one for one in seen if one is not None], start)

    def _rules(self, test: RuleTest) -> Loaded:
        folder = Path(test.file).parent
        paths = tuple(folder / name for name in test.document.rules)
        if paths not in self._loaded:
            try:
                self._loaded[paths] = load_files(paths)
            except RulesInvalid as invalid:
                place = Problem(
                    test.file, test.line, 1, f"the rules of test {test.document.name!r} are wrong:"
                )
                raise RulesInvalid([place, *invalid.problems]) from None
        return self._loaded[paths]


def instant(text: str, start: datetime) -> datetime:
    return _absolute(text, "at") if text[4:5] == "-" else start + parse_duration(text)


def _absolute(text: str, key: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise InvalidInput(f"{key} {text!r} is not an instant", remedy="write it as 2026-03-04T10:00:00Z")
    return parsed.astimezone(UTC)


def _give(world: World, given: Given, start: datetime) -> None:
    at = instant(given.at, start)
    if given.series is not None:
        assert given.values is not None
        assert given.every is not None
        for place, value in enumerate(expand(given.values)):
            if value is not None:
                when = at + place * given.every
                world.at(
                    when, "arrive", owner=given.owner, key=given.series, value=value, labels=given.labels
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


def _seen(one: Happening) -> Seen | None:
    facts = one.facts
    if one.kind == "alarm":
        return Seen(one.at, one.state, one.name, one.owner, str(facts.get("message", "")))
    if one.kind == "step":
        if facts["step_kind"] in ("wait", "branch", "parallel") or one.state != "completed":
            return None
        return Seen(one.at, "sent", one.name, one.owner, _text(facts))
    if one.kind == "run":
        return Seen(one.at, f"run {one.state}", one.name, one.owner, str(facts.get("reason", "")))
    if one.kind == "health":
        begins = facts["was"] is None
        return Seen(one.at, f"health {one.state}", one.name, one.owner, _text(facts), begins)
    return Seen(one.at, one.kind, one.name, one.owner, _text(facts.get("payload", facts)))


def _text(facts: Any) -> str:
    """Everything a text can be looked for in."""
    said = {key: value for key, value in facts.items() if key not in ("attempt", "step", "step_kind")}
    texts = [str(said.pop(key)) for key in ("subject", "text") if said.get(key)]
    return "\n".join([*texts, json.dumps(said, ensure_ascii=False, default=str)])


def _compared(test: RuleTest, seen: Sequence[Seen], start: datetime) -> Verdict:
    left = list(seen)
    missing: list[Expected] = []
    for expected in test.document.expect:
        found = next((one for one in left if _meets(one, expected, start)), None)
        if found is None:
            missing.append(expected)
        else:
            left.remove(found)
    complete = {*_ALARMS, *test.document.nothing_else, *(one.kind for one in test.document.expect)}
    unexpected = tuple(one for one in left if one.kind in complete and one.kind in EXPECTATIONS)
    runs = {one.name for one in test.document.expect if one.kind == "run"}
    if "run" in test.document.nothing_else:
        unexpected += tuple(one for one in left if one.kind.startswith("run ") and one.name not in runs)
    if "health" in complete:
        unexpected += tuple(one for one in left if one.kind.startswith("health ") and not one.begins)
    if "event" in complete and "event" not in test.document.nothing_else:
        types = {one.name for one in test.document.expect if one.kind == "event"}
        unexpected = tuple(one for one in unexpected if one.kind != "event" or one.name in types)
    return Verdict(test, tuple(missing), unexpected, tuple(seen), start)


def _meets(seen: Seen, expected: Expected, start: datetime) -> bool:
    return (
        seen.kind == expected.outcome
        and seen.name == expected.name
        and (expected.at is None or seen.at == instant(expected.at, start))
        and expected.owner in (None, seen.owner)
        and (expected.says is None or expected.says in seen.says)
    )


def since(at: datetime, start: datetime) -> str:
    """`10m`, the distance from the start of a test."""
    return format_duration(at - start) if at >= start else at.isoformat()
