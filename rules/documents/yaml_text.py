"""The YAML text of documents, as a rule file holds them.

Guarantee: loading the text gives the same documents, so `tocsin plan` of it shows no changes. Keys
that have their default value are left out.

Pure: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import ValidationError

from rules.documents.load.yaml_tree import FLOAT, INT
from schemas.documents import DOCUMENT_KINDS

_WIDTH = 100


class _Dumper(yaml.SafeDumper):
    """Quotes exactly the texts that `load/yaml_tree.py` would read as something else."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's name and type

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
for _tag, _pattern in (
    ("null", "|~|null"),
    ("bool", "true|false"),
    ("int", INT.pattern),
    ("float", FLOAT.pattern),
):
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), None)


def document_text(kind: str, document: Mapping[str, Any]) -> str:
    """One document. One that this version of Tocsin cannot read is written as it is stored."""
    return yaml.dump(
        {kind: _short_form(kind, document)},
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
    )


def _short_form(kind: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without defaults, if that means the same, and without the content of calendars (`days`)."""
    document = {
        key: {inner: each for inner, each in value.items() if inner != "days"}
        if key == "active_in" and value
        else value
        for key, value in document.items()
        if key != "days"
    }
    try:
        model = DOCUMENT_KINDS[kind].model_validate(document)
        short = model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return short if DOCUMENT_KINDS[kind].model_validate(short) == model else document
    except (KeyError, ValidationError):
        return document
