"""The result of an import: documents with the notes about them, and what was not translated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rules.documents.load import RulesInvalid, load_text
from rules.documents.yaml_text import document_text
from schemas.documents import CalcRuleDocument

_COMMENT_WIDTH = 98


class Untranslatable(Exception):
    """A rule, or a part of it, has no translation. The text is the reason."""


class ImportedDocument(NamedTuple):
    kind: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ImportedRule:
    """One rule of the source: its documents, or the reason why it has none."""

    name: str
    file: str
    line: int
    source: str
    """The text of the rule, such as its expression."""
    documents: Sequence[ImportedDocument] = ()
    notes: Sequence[str] = ()
    problem: str = ""

    @property
    def is_translated(self) -> bool:
        return not self.problem


@dataclass(slots=True)
class Translation:
    rules: list[ImportedRule] = field(default_factory=list)
    types: Sequence[ImportedDocument] = ()
    """The datapoint_types of the series that the rules read."""

    @property
    def translated(self) -> list[ImportedRule]:
        return [rule for rule in self.rules if rule.is_translated]

    @property
    def untranslated(self) -> list[ImportedRule]:
        return [rule for rule in self.rules if not rule.is_translated]

    def yaml(self) -> str:
        """All documents as one rule file; those of a rule with its source and its notes as comments."""
        types = [document_text(kind, document) for kind, document in self.types]
        return "---\n".join([*types, *(_rule_text(rule) for rule in self.translated)])


def check_documents(documents: Sequence[ImportedDocument], calc_rules: Iterable[str] = ()) -> None:
    """Raise `Untranslatable` for documents that `tocsin check` rejects.

    `calc_rules` are the names of other calc_rules of the import. Here only their names matter.
    """
    others = [
        CalcRuleDocument.model_validate(
            {"name": name, "inputs": {"a": {"key": name}}, "every": "1m", "value": "a"}, strict=False
        )
        for name in calc_rules
    ]
    try:
        load_text(Translation([ImportedRule("", "", 1, "", documents)]).yaml(), applied=others)
    except RulesInvalid as invalid:
        raise Untranslatable(f"its translation is not valid: {invalid.problems[0].message}") from None


def _rule_text(rule: ImportedRule) -> str:
    comments = [f"{rule.file}:{rule.line}: {rule.source}", *rule.notes]
    lines = "".join(f"# {line}\n" for comment in comments for line in _wrapped(comment))
    return lines + "---\n".join(document_text(kind, document) for kind, document in rule.documents)


def _wrapped(text: str) -> list[str]:
    """Lines of a comment; a line break of the source, or a control character, cannot end it."""
    words = "".join(letter if letter.isprintable() else " " for letter in text).split()
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 1 > _COMMENT_WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
