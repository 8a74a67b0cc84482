"""`tocsin test`: runs rule tests in virtual time.

Guarantees: nothing is sent, only the files are read, no server is needed, and no time passes. The
exit code is 0 if all tests pass and 1 otherwise. Every test of every file has a result: one that
cannot be loaded is a failed test. A failure shows what is missing, what was not expected, and
everything that happened.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.options import Json, ProgressLines, check_output
from tocsin.cli.output import print_json, printable
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rules.documents.load.source import InvalidDocument
    from rules.replay.rule_tests.load import RuleTest
    from rules.replay.rule_tests.rule_tests import RuleTestResult

Files = Annotated[
    list[Path], typer.Argument(help="Rule tests, or folders that hold them.", metavar="FILES...")
]


def run_tests(
    files: Files,
    only: Annotated[
        str | None, typer.Option("--only", "-k", help="Only tests whose name contains this text.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the results to this file, as JUnit XML.")
    ] = None,
    within: Annotated[
        Path | None, typer.Option("--within", hidden=True, help="Refuse rule files outside of this folder.")
    ] = None,
    progress: ProgressLines = False,
    as_json: Json = False,
) -> None:
    """Run rule tests in virtual time; needs no server.

    \b
    Example:
      tocsin test examples/tests
    """
    from rules.replay.rule_tests.rule_tests import RuleTests, read_tests
    from tocsin.cli.progress import progress_lines
    from tocsin.cli.rules.test_report import junit_text, result_json, result_lines
    from tocsin.cli.session import command_settings
    from tocsin.core.files import written_whole

    command_settings()
    if junit is not None:
        check_output(junit, "--junit")
    runner = RuleTests()
    # A file that cannot be read has no name, so it is never left out.
    tests = [test for test in read_tests(files) if only is None or only in (test.name or only)]
    if not tests:
        raise InvalidInput(f"no test has {only!r} in its name" if only else "the files contain no test")
    if within is not None:
        _refuse_outside(tests, within.resolve())
    results = []
    report = progress_lines() if progress else None
    for number, test in enumerate(tests, 1):
        results.append(runner.run(test))
        if report is not None:
            report(number / len(tests))
    if junit is not None:
        with written_whole(junit) as being_written:
            being_written.write_text(junit_text(results), encoding="utf-8")
    if as_json:
        print_json([result_json(result) for result in results])
    else:
        for result in results:
            for line in result_lines(result):
                typer.echo(printable(line))
        typer.echo(_counts_text(results))
    if not all(result.passed for result in results):
        raise typer.Exit(1)


def _refuse_outside(tests: Sequence[RuleTest | InvalidDocument], folder: Path) -> None:
    """Refuse tests of others that would read files of this machine."""
    from rules.replay.rule_tests.load import RuleTest

    for test in tests:
        for rules in test.document.rules if isinstance(test, RuleTest) else ():
            if not (Path(test.file).parent / rules).resolve().is_relative_to(folder):
                raise InvalidInput(
                    f"{test.file}: the test {test.name!r} names the rule file {str(rules)!r}",
                    remedy="name a file of the request",
                )


def _counts_text(results: list[RuleTestResult]) -> str:
    failed = sum(not result.passed for result in results)
    return f"{len(results) - failed} passed, {failed} failed"
