"""Runs a rule test that is written in YAML."""

from __future__ import annotations

from pathlib import Path

from rules.replay.rule_tests.rule_tests import RuleTestResult, RuleTests, load_tests


def run_written(folder: Path, rules: str, body: str, **files: str) -> RuleTestResult:
    """`files` are further rule files, by their names without `.yaml`."""
    (folder / "rules.yaml").write_text(rules)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    lines = "\n".join(f"  {line}" for line in body.strip("\n").splitlines())
    (folder / "t.test.yaml").write_text(f"test:\n  name: it\n  rules: [rules.yaml]\n{lines}\n")
    (test,) = load_tests([folder / "t.test.yaml"])
    return RuleTests().run(test)


def assert_passes(folder: Path, rules: str, body: str, **files: str) -> None:
    result = run_written(folder, rules, body, **files)
    assert result.passed, f"{result.error}\nmissing {result.missing}\nobserved {result.observed}"
