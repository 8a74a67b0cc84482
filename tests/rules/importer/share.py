"""Which share of a folder of Prometheus rule files translates: `python -m tests.rules.importer.share FOLDER`.

It prints a row for the table of docs/importing.md, and the reasons of what does not translate. YAML
and JSON files without `groups` are left out.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import yaml

from rules.importer import translate_prometheus

_SUFFIXES = (".yml", ".yaml", ".json")


def rule_files(folder: Path) -> dict[str, str]:
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES):
        text = path.read_text(encoding="utf-8")
        try:
            content = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        if isinstance(content, dict) and isinstance(content.get("groups"), list):
            files[str(path.relative_to(folder))] = text
    return files


def report(folder: Path) -> str:
    rules = translate_prometheus(rule_files(folder)).rules
    translated = sum(rule.is_translated for rule in rules)
    lines = [
        f"| {folder.name} | {len(rules):,} | {translated:,} | {translated / max(len(rules), 1):.1%} |",
        "",
    ]
    reasons = Counter(rule.problem for rule in rules if not rule.is_translated)
    return "\n".join([*lines, *(f"{count:4} {reason}" for reason, count in reasons.most_common())])


if __name__ == "__main__":
    sys.stdout.write(report(Path(sys.argv[1])) + "\n")
