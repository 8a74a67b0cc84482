"""`tocsin test`: runs rule tests in virtual time.

Guarantees: nothing is sent, only the files are read, no server is needed, and no time passes. The
exit code is 0 if all tests pass and 1 otherwise. A failure shows what is missing, what was not
expected, and everything that happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.options import Json, check_output
from tocsin.cli.output import print_json, printable

if TYPE_CHECKING:
    from rules.replay.rule_tests.rule_tests import ObservedEntry, RuleTestResult
    from schemas.documents.rule_test import Expected

Files = Annotated[
    list[Path], typer.Argument(help="Rule tests, or folders that hold them.", metavar="FILES...")
]
_MAX_SHOWN = 30
_OPERATOR_EVENTS = ("alarm-acknowledged", "alarm-snoozed", "alarm-unsnoozed", "alarm-snooze-ended")
"""Operator events. Other events are not shown, but their consequences are."""


def run_tests(
    files: Files,
    only: Annotated[
        str | None, typer.Option("--only", "-k", help="Only tests whose name contains this text.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the results to this file, as JUnit XML.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run rule tests in virtual time; needs no server.

    \b
    Example:
      tocsin test examples/tests
    """
    from rules.replay.rule_tests.rule_tests import RuleTests, load_tests
    from tocsin.cli.session import command_settings
    from tocsin.core.errors import InvalidInput
    from tocsin.core.files import written_whole

    command_settings()
    if junit is not None:
        check_output(junit, "--junit")
    tests = [test for test in load_tests(files) if only is None or only in test.document.name]
    if not tests:
        raise InvalidInput(f"no test has {only!r} in its name" if only else "the files contain no test")
    runner = RuleTests()
    results = [runner.run(test) for test in tests]
    if junit is not None:
        with written_whole(junit) as being_written:
            being_written.write_text(junit_text(results), encoding="utf-8")
    if as_json:
        print_json([_result_json(result) for result in results])
    else:
        for result in results:
            for line in result_lines(result):
                typer.echo(printable(line))
        failed = sum(not result.passed for result in results)
        typer.echo(f"{len(results) - failed} passed, {failed} failed")
    if not all(result.passed for result in results):
        raise typer.Exit(1)


def result_lines(result: RuleTestResult) -> list[str]:
    name = result.test.document.name
    if result.passed:
        return [f"pass  {name}"]
    lines = [f"FAIL  {name}  ({result.test.file}:{result.test.line})"]
    if result.error is not None:
        return [*lines, f"      {result.error}"]
    lines += [f"      missing     {_expected_text(expected)}" for expected in result.missing]
    lines += [f"      unexpected  {_observed_text(observed, result)}" for observed in result.unexpected]
    return [*lines, "      what happened:", *(f"        {line}" for line in _timeline(result))]


def _timeline(result: RuleTestResult) -> list[str]:
    shown = [
        observed
        for observed in result.observed
        if observed.kind != "event" or observed.name in _OPERATOR_EVENTS
    ]
    width = max((len(_offset(observed, result)) for observed in shown[:_MAX_SHOWN]), default=0)
    lines = [
        f"{'>' if observed in result.unexpected else ' '} {_observed_text(observed, result, width)}"
        for observed in shown[:_MAX_SHOWN]
    ]
    if len(shown) > _MAX_SHOWN:
        lines.append(f"  and {len(shown) - _MAX_SHOWN} more")
    return lines or ["  nothing"]


def _expected_text(expected: Expected) -> str:
    owner = f" of {expected.owner}" if expected.owner else ""
    text = f": {expected.says}" if expected.says else ""
    return f"{expected.at or 'any time':<8} {expected.outcome} {expected.name}{owner}{text}"


def _observed_text(observed: ObservedEntry, result: RuleTestResult, width: int = 8) -> str:
    owner = f" of {observed.owner}" if observed.owner else ""
    text = f": {observed.text.splitlines()[0]}" if observed.text.strip() not in ("", "{}") else ""
    return f"{_offset(observed, result):<{max(width, 8)}} {observed.kind} {observed.name}{owner}{text}"


def _offset(observed: ObservedEntry, result: RuleTestResult) -> str:
    from rules.replay.rule_tests.rule_tests import since_start

    return since_start(observed.at, result.start)


def _result_json(result: RuleTestResult) -> dict[str, object]:
    return {
        "name": result.test.document.name,
        "file": result.test.file,
        "line": result.test.line,
        "passed": result.passed,
        "error": result.error,
        "missing": [_expected_text(expected) for expected in result.missing],
        "unexpected": [_observed_text(observed, result) for observed in result.unexpected],
    }


def junit_text(results: Sequence[RuleTestResult]) -> str:
    from xml.etree import ElementTree

    failed = sum(not result.passed for result in results)
    suite = ElementTree.Element("testsuite", name="tocsin", tests=str(len(results)), failures=str(failed))
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", classname=result.test.file, name=result.test.document.name
        )
        if not result.passed:
            text = "\n".join(printable(line) for line in result_lines(result))
            ElementTree.SubElement(case, "failure", message=text.splitlines()[0]).text = text
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
