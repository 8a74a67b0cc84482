"""Loads test documents.

Guarantee: a test that cannot be loaded does not affect the others. `read_tests` returns it as an
`InvalidDocument` with its name and problems. A file that cannot be read is one without a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rules.documents.load.files import read_files
from rules.documents.load.problems import RulesInvalid
from rules.documents.load.source import InvalidDocument, ReadDocuments, SourceDocument, read_source
from rules.documents.load.validation import TESTS
from schemas.documents.rule_test import RuleTestDocument


class RuleTest(NamedTuple):
    source: SourceDocument
    document: RuleTestDocument

    @property
    def name(self) -> str:
        return self.document.name

    @property
    def file(self) -> str:
        return self.source.file

    @property
    def line(self) -> int:
        return self.source.validated.key.line + 1


def load_tests(paths: Sequence[Path]) -> list[RuleTest]:
    """`RulesInvalid` if any of the tests cannot be loaded."""
    tests = read_tests(paths)
    problems = [problem for test in tests if isinstance(test, InvalidDocument) for problem in test.problems]
    if problems:
        raise RulesInvalid(problems)
    return [test for test in tests if isinstance(test, RuleTest)]


def read_tests(paths: Sequence[Path]) -> list[RuleTest | InvalidDocument]:
    """All tests in the order of the files."""
    sources, problems = read_files(paths)
    tests: list[RuleTest | InvalidDocument] = [
        InvalidDocument(problem.file, problem.line, None, (problem,)) for problem in problems
    ]
    for source in sources:
        read = ReadDocuments()
        read_source(source, read, TESTS)
        valid = [
            RuleTest(found, found.model)
            for found in read.documents
            if isinstance(found.model, RuleTestDocument)
        ]
        tests += sorted([*valid, *read.invalid], key=lambda test: test.line)
    return tests
