"""Runs rule tests, each by itself.

Guarantee: every test has a result, whatever happens in it: a test that cannot be loaded or cannot
continue, such as one with an acknowledgement without an alarm, fails with the reason, and the
others run. The live loader loads its rules. Tests do not affect each other.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel

from rules.documents.load.loader import LoadedDocuments, load_files
from rules.documents.load.problems import RulesInvalid
from rules.documents.load.source import InvalidDocument
from rules.replay.rule_tests.check import problems_of_test
from rules.replay.rule_tests.compare import ObservedEntry, compare, observed_entries
from rules.replay.rule_tests.inputs import outages, schedule_input
from rules.replay.rule_tests.instants import absolute_instant, instant, since_start
from rules.replay.rule_tests.load import RuleTest, load_tests, read_tests
from rules.replay.rule_tests.world import World
from schemas.documents.rule_test import Expected
from tocsin.core.errors import TocsinError

__all__ = ["RuleTest", "RuleTestResult", "RuleTests", "load_tests", "read_tests", "since_start"]


@dataclass(frozen=True)
class RuleTestResult:
    name: str
    file: str
    line: int
    start: datetime | None = None
    missing: tuple[Expected, ...] = ()
    unexpected: tuple[ObservedEntry, ...] = ()
    observed: tuple[ObservedEntry, ...] = ()
    error: str | None = None
    """Why the test could not run to its end; may have several lines."""
    is_unreadable: bool = False
    """The file or the document could not be read at all."""
    duration_s: float = 0.0

    @property
    def passed(self) -> bool:
        return not (self.missing or self.unexpected or self.error)


class RuleTests:
    """Runs tests. Each set of rule files is loaded once."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[Path, ...], LoadedDocuments] = {}

    def run(self, test: RuleTest | InvalidDocument) -> RuleTestResult:
        if isinstance(test, InvalidDocument):
            return _unreadable(test)
        began = time.perf_counter()
        result = RuleTestResult(test.document.name, test.file, test.line)
        try:
            result = self._run(test, result)
        except TocsinError as error:
            result = replace(result, error=str(error))
        except Exception as error:
            # A defect of Tocsin must not hide the results of the other tests.
            where = traceback.extract_tb(error.__traceback__)[-1]
            defect = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
            result = replace(result, error=f"tocsin cannot run this test, which is a defect: {defect}")
        return replace(result, duration_s=time.perf_counter() - began)

    def _run(self, test: RuleTest, result: RuleTestResult) -> RuleTestResult:
        document = test.document
        start = absolute_instant(document.start)
        documents = self._rules(test, document.rules)
        later = {given.apply: self._rules(test, given.apply) for given in document.given if given.apply}
        problems = problems_of_test(test, [documents, *later.values()])
        if problems:
            raise RulesInvalid(problems)
        world = World(documents, start, outages(document, start), later)
        for given in document.given:
            schedule_input(world, given, start)
        world.run_until(instant(document.until, start))
        observed = observed_entries(world.log)
        missing, unexpected = compare(document, observed, start)
        return replace(result, start=start, missing=missing, unexpected=unexpected, observed=tuple(observed))

    def _rules(self, test: RuleTest, files: tuple[str, ...]) -> list[BaseModel]:
        folder = Path(test.file).parent
        paths = tuple(folder / name for name in files)
        if paths not in self._loaded:
            try:
                self._loaded[paths] = load_files(paths)
            except RulesInvalid as invalid:
                raise TocsinError(f"the rules of the test are invalid:\n{invalid}") from None
        return [loaded.model for loaded in self._loaded[paths].documents]


def _unreadable(test: InvalidDocument) -> RuleTestResult:
    is_unreadable = test.name is None
    name = f"{test.file} cannot be read" if test.name is None else test.name
    error = "\n".join(str(problem) for problem in test.problems)
    return RuleTestResult(name, test.file, test.line, error=error, is_unreadable=is_unreadable)
