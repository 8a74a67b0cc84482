"""The audit tells a vulnerable package, a clean one and a service that does not answer apart."""

from __future__ import annotations

import json

from tests.supply.audit import read_report, report

CLEAN = {"name": "rich", "version": "15.0.0", "vulns": []}
VULNERABLE = {
    "name": "jinja2",
    "version": "3.0.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1.6"], "aliases": [], "description": ""}],
}
SKIPPED = {"name": "typer", "skip_reason": "Dependency not found on PyPI"}


def outcome(*packages: object, required: bool = False) -> tuple[str, int]:
    return report(read_report(json.dumps({"dependencies": packages, "fixes": []})), required=required)


def test_a_vulnerable_package_fails_and_is_named_with_its_fix() -> None:
    text, code = outcome(CLEAN, VULNERABLE)
    assert code == 1
    assert "vulnerable: jinja2 3.0.0: PYSEC-1, fixed in 3.1.6" in text


def test_clean_packages_pass() -> None:
    assert outcome(CLEAN) == ("known vulnerabilities: 0 in 1 packages", 0)


def test_a_service_that_knows_no_package_is_no_clean_result() -> None:
    text, code = outcome(SKIPPED)
    assert text.startswith("NOT AUDITED")
    assert code == 0
    assert outcome(SKIPPED, required=True)[1] == 1


def test_a_package_that_the_service_does_not_know_is_named() -> None:
    text, code = outcome(CLEAN, SKIPPED)
    assert "does not know typer" in text
    assert code == 0
    assert outcome(CLEAN, SKIPPED, required=True)[1] == 1


def test_no_report_at_all_is_no_clean_result() -> None:
    assert report(read_report("Traceback ..."), required=False)[0].startswith("NOT AUDITED")
