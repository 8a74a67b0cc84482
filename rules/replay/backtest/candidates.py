"""The documents to try: those of the files, and what holds beside them, as an apply would leave it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rules.documents.load import load_files
from rules.documents.rule_book import parse_document
from rules.replay.backtest.recording.model import Story, Version

_CHECKED = ("datapoint_type", "event_rule")
"""What rules are checked against when they are loaded."""


def candidate_documents(story: Story, files: Sequence[Path], anchor: datetime) -> list[Version]:
    """The files replace documents of the same kind and name; the others stay as they were at the end of the window."""
    held = {(one.kind, one.name): one for one in story.versions if one.until_seq is None}
    names: dict[str, set[str]] = {}
    for kind, name in held:
        names.setdefault(kind, set()).add(name)
    checked = (one for one in held.values() if one.kind in _CHECKED)
    models = [model for one in checked if (model := parse_document(one.kind, one.document)) is not None]
    known = {kind: frozenset(of_kind) for kind, of_kind in names.items()}
    loaded = load_files(files, known=known, applied=models, anchor=anchor)
    for document in loaded.documents:
        held[document.kind, document.name] = Version(document.kind, document.name, 0, document.data, 0, None)
    return list(held.values())
