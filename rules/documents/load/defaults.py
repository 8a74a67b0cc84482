"""The `defaults` document: keys for the documents that follow it in its file.

    defaults:
      event_rule: {severity: high, notify: [ops]}
    ---
    event_rule: {name: hot, datapoint: t, above: 5}

Guarantee: a document has its own keys, and the defaults of its kind for those that it leaves out. A
list or a mapping is replaced as a whole. The problem of a default is reported at the default.

Why not merge keys of YAML: their anchors end with the document, and each rule is a document of its
own. Why only for one file: a reader sees all keys of a rule without opening another file.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from pydantic import BaseModel

from rules.documents.load.problems import RuleProblem
from rules.documents.load.yaml_tree import YamlNode
from schemas.documents import DOCUMENT_KINDS

DEFAULTS = "defaults"


class FileDefaults:
    """The defaults of one file, by kind. A later `defaults` document adds to them."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._by_kind: dict[str, YamlNode] = {}

    def read(self, document: YamlNode) -> list[RuleProblem]:
        """Take over a `defaults` document, or return its problems."""
        node = document.members[DEFAULTS]
        if not isinstance(node.value, dict):
            return [self._problem(node, "'defaults' must be a mapping from kinds to their keys")]
        problems = [problem for kind in node.keys for problem in self._problems_of(node, kind)]
        if not problems:
            for kind in node.keys:
                self._by_kind[kind] = node.members[kind]
        return problems

    def fill(self, document: YamlNode) -> None:
        """Add the defaults of its kind to a document."""
        for kind, body in document.members.items():
            defaults = self._by_kind.get(str(kind))
            if defaults is None or not isinstance(body.value, dict):
                continue
            for name, key in defaults.keys.items():
                if name not in body.keys:
                    body.value[name] = defaults.members[name].value
                    body.members[name], body.keys[name] = defaults.members[name], key

    def _problems_of(self, node: YamlNode, kind: str) -> Iterator[RuleProblem]:
        body = node.members[kind]
        if kind not in DOCUMENT_KINDS:
            hint = _hint(kind, list(DOCUMENT_KINDS), "the kinds are")
            yield self._problem(node.keys[kind], f"unknown kind '{kind}' in defaults, {hint}")
        elif not isinstance(body.value, dict):
            yield self._problem(body, f"the defaults of {kind} must be a mapping")
        else:
            keys = _keys(DOCUMENT_KINDS[kind])
            for name, key in body.keys.items():
                if name == "name":
                    yield self._problem(key, f"'name' cannot be a default, each {kind} has its own")
                elif name not in keys:
                    hint = _hint(name, keys, "the keys are")
                    yield self._problem(key, f"unknown key '{name}' in the defaults of {kind}, {hint}")

    def _problem(self, node: YamlNode, message: str) -> RuleProblem:
        return RuleProblem(self._file, node.line + 1, node.column + 1, message)


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _hint(name: str, known: list[str], listed: str) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"{listed} {', '.join(known)}"
