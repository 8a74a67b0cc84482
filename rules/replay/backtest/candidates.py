"""Finds the candidate documents: those of the files, and the applied ones
that they do not replace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rules.documents.load import load_files
from rules.documents.rule_book import parse_document
from rules.replay.backtest.recording.model import DocumentVersion, RecordingHeader

_CHECKED_KINDS = ("datapoint_type", "event_rule")
"""Applied documents of these kinds take part in the checks of the loader."""


def candidate_documents(
    header: RecordingHeader, files: Sequence[Path], anchor: datetime
) -> list[DocumentVersion]:
    """The documents in force if the files were applied at the end of the window.

    A document of the files replaces the applied one of the same kind and name.
    """
    documents = {
        (version.kind, version.name): version for version in header.versions if version.until_seq is None
    }
    names: dict[str, set[str]] = {}
    for kind, name in documents:
        names.setdefault(kind, set()).add(name)
    checked = (version for version in documents.values() if version.kind in _CHECKED_KINDS)
    models = [
        model for version in checked if (model := parse_document(version.kind, version.document)) is not None
    ]
    known = {kind: frozenset(of_kind) for kind, of_kind in names.items()}
    loaded = load_files(files, known=known, applied=models, anchor=anchor)
    for document in loaded.documents:
        documents[document.kind, document.name] = DocumentVersion(
            document.kind, document.name, 0, document.data, 0, None
        )
    return list(documents.values())
