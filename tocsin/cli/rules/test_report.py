"""The results of rule tests as text, as JSON and as JUnit XML.

Guarantees: columns are aligned for every duration. No text is cut before its reason: an entry is
shown on one line, and an entry that an expectation with `says` was compared with is shown in full.
The JUnit file has a case for each test, with its file and time, also for those that could not be
loaded. It has only attributes that the xUnit plugin of Jenkins accepts; the line of a failed test is in
its text.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from rules.replay.rule_tests.compare import ObservedEntry
from rules.replay.rule_tests.instants import since_start
from rules.replay.rule_tests.rule_tests import RuleTestResult
from schemas.documents.rule_test import Expected
from tocsin.cli.output import printable

_MAX_SHOWN = 30
_MAX_TEXT_LINES = 20
_LEAST_WIDTH = 8
_OPERATOR_EVENTS = ("alarm-acknowledged", "alarm-snoozed", "alarm-unsnoozed", "alarm-snooze-ended")
"""Operator events. Other events are not shown, but their consequences are."""


def result_lines(result: RuleTestResult) -> list[str]:
    if result.passed:
        return [f"pass  {result.name}"]
    return [f"FAIL  {result.name}  ({result.file}:{result.line})", *_reason_lines(result)]


def result_json(result: RuleTestResult) -> dict[str, object]:
    return {
        "name": result.name,
        "file": result.file,
        "line": result.line,
        "passed": result.passed,
        "seconds": round(result.duration_s, 6),
        "error": result.error,
        "missing": [_expected_text(expected) for expected in result.missing],
        "unexpected": [_observed_text(observed, result) for observed in result.unexpected],
    }


def junit_text(results: Sequence[RuleTestResult]) -> str:
    suites = ElementTree.Element("testsuites", _totals(results))
    suite = ElementTree.SubElement(suites, "testsuite", {**_totals(results), "skipped": "0"})
    for result in results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=result.file,
            name=result.name,
            time=f"{result.duration_s:.6f}",
        )
        if not result.passed:
            lines = [printable(line.strip()) for line in _reason_lines(result)]
            tag = "error" if result.is_unreadable else "failure"
            fault = ElementTree.SubElement(case, tag, message=lines[0], type=tag)
            fault.text = "\n".join(printable(line) for line in result_lines(result))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _totals(results: Sequence[RuleTestResult]) -> dict[str, str]:
    errors = sum(result.is_unreadable for result in results)
    return {
        "name": "tocsin",
        "tests": str(len(results)),
        "failures": str(sum(not result.passed for result in results) - errors),
        "errors": str(errors),
        "time": f"{sum(result.duration_s for result in results):.6f}",
    }


def _reason_lines(result: RuleTestResult) -> list[str]:
    if result.error is not None:
        return [f"      {line}" for line in result.error.splitlines()]
    width = max(map(len, _difference_offsets(result)), default=0)
    lines = [f"      missing     {_expected_text(expected, width)}" for expected in result.missing]
    lines += [
        f"      unexpected  {_observed_text(observed, result, width)}" for observed in result.unexpected
    ]
    return [*lines, "      what happened:", *(f"        {line}" for line in _timeline(result))]


def _difference_offsets(result: RuleTestResult) -> Iterator[str]:
    for expected in result.missing:
        yield _expected_offset(expected)
    for observed in result.unexpected:
        yield _offset(observed, result)


def _timeline(result: RuleTestResult) -> list[str]:
    happened = [
        observed
        for observed in result.observed
        if observed.kind != "event" or observed.name in _OPERATOR_EVENTS
    ]
    shown = happened[:_MAX_SHOWN]
    width = max((len(_offset(observed, result)) for observed in shown), default=0)
    compared = {(expected.outcome, expected.name) for expected in result.missing if expected.says}
    lines: list[str] = []
    for observed in shown:
        mark = ">" if observed in result.unexpected else " "
        lines.append(f"{mark} {_observed_text(observed, result, width)}")
        if (observed.kind, observed.name) in compared:
            lines += _rest_of_text(observed, max(width, _LEAST_WIDTH) + 3)
    if len(happened) > _MAX_SHOWN:
        lines.append(f"  and {len(happened) - _MAX_SHOWN} more")
    return lines or ["  nothing"]


def _rest_of_text(observed: ObservedEntry, indent: int) -> list[str]:
    """The lines of the text after the first, which `says` was also searched in."""
    rest = [line for line in observed.text.splitlines()[1:] if line.strip() not in ("", "{}")]
    more = [f"and {len(rest) - _MAX_TEXT_LINES} more lines"] if len(rest) > _MAX_TEXT_LINES else []
    return [f"{' ' * indent}| {line}" for line in [*rest[:_MAX_TEXT_LINES], *more]]


def _expected_text(expected: Expected, width: int = 0) -> str:
    owner = f" of {expected.owner}" if expected.owner else ""
    text = f": {expected.says}" if expected.says else ""
    offset = f"{_expected_offset(expected):<{max(width, _LEAST_WIDTH)}}"
    return f"{offset} {expected.outcome} {expected.name}{owner}{text}"


def _expected_offset(expected: Expected) -> str:
    return expected.at or "any time"


def _observed_text(observed: ObservedEntry, result: RuleTestResult, width: int = 0) -> str:
    owner = f" of {observed.owner}" if observed.owner else ""
    text = f": {observed.text.splitlines()[0]}" if observed.text.strip() not in ("", "{}") else ""
    offset = f"{_offset(observed, result):<{max(width, _LEAST_WIDTH)}}"
    return f"{offset} {observed.kind} {observed.name}{owner}{text}"


def _offset(observed: ObservedEntry, result: RuleTestResult) -> str:
    assert result.start is not None, "a test that ran has a start"
    return since_start(observed.at, result.start)
