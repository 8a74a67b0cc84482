"""`tocsin test`: rules held to what they must do, in virtual time.

Guarantee: nothing is sent, nothing is read but the files, no server is needed, and no time passes. Exit code 0 if all
tests pass, 1 otherwise. A failure shows what is missing, what should not have been, and what happened around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.options import Json, check_output
from tocsin.cli.output import print_json, printable

if TYPE_CHECKING:
    from rules.replay.rule_tests.rule_tests import Observed, RuleTestResult
    from schemas.documents.rule_test import Expected

Files = Annotated[list[Path], typer.Argument(help="Files of tests in YAML, or folders.", metavar="FILES...")]
_SHOWN = 30
_ACTS = ("alarm-acknowledged", "alarm-snoozed", "alarm-unsnoozed", "alarm-snooze-ended")
"""Other events are not shown: what matters of them is what came of them."""


def run_tests(
    files: Files,
    only: Annotated[
        str | None, typer.Option("--only", "-k", help="Only tests whose name holds this.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML here.")] = None,
    as_json: Json = False,
) -> None:
    """Test rules in virtual time; needs no server.

    \b
    Example:
      tocsin test examples/tests
    """
    from rules.replay.rule_tests.rule_tests import RuleTests, load_tests
    from tocsin.core.errors import InvalidInput
    from tocsin.core.files import written_whole

    if junit is not None:
        check_output(junit, "--junit")
    found = [one for one in load_tests(files) if only is None or only in one.document.name]
    if not found:
        raise InvalidInput(f"no test has {only!r} in its name" if only else "the files hold no test")
    tests = RuleTests()
    results = [tests.run(one) for one in found]
    if junit is not None:
        with written_whole(junit) as being_written:
            being_written.write_text(junit_text(results), encoding="utf-8")
    if as_json:
        print_json([_facts(result) for result in results])
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
    lines += [f"      missing     {_expected_text(one)}" for one in result.missing]
    lines += [f"      unexpected  {_observed_text(one, result)}" for one in result.unexpected]
    return [*lines, "      what happened:", *(f"        {line}" for line in _timeline(result))]


def _timeline(result: RuleTestResult) -> list[str]:
    shown = [one for one in result.observed if one.kind != "event" or one.name in _ACTS]
    lines = [
        f"{'>' if one in result.unexpected else ' '} {_observed_text(one, result)}" for one in shown[:_SHOWN]
    ]
    if len(shown) > _SHOWN:
        lines.append(f"  and {len(shown) - _SHOWN} more")
    return lines or ["  nothing"]


def _expected_text(one: Expected) -> str:
    owner = f" of {one.owner}" if one.owner else ""
    return f"{one.at or 'any time':<8} {one.outcome} {one.name}{owner}" + (
        f": {one.says}" if one.says else ""
    )


def _observed_text(one: Observed, result: RuleTestResult) -> str:
    from rules.replay.rule_tests.rule_tests import since_start

    owner = f" of {one.owner}" if one.owner else ""
    says = one.text.splitlines()[0][:100] if one.text.strip() not in ("", "{}") else ""
    return f"{since_start(one.at, result.start):<8} {one.kind} {one.name}{owner}" + (
        f": {says}" if says else ""
    )


def _facts(result: RuleTestResult) -> dict[str, object]:
    return {
        "name": result.test.document.name,
        "file": result.test.file,
        "line": result.test.line,
        "passed": result.passed,
        "error": result.error,
        "missing": [_expected_text(one) for one in result.missing],
        "unexpected": [_observed_text(one, result) for one in result.unexpected],
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
