"""The retry policy of a schedule, for the steps of its action. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.documents.runbook import RESPONSES

_LISTS = ("steps", "finally", "then", "else")


def override_retry(document: Mapping[str, Any], retry: Mapping[str, Any]) -> dict[str, Any]:
    """The document of an action in which every response has this `retry`."""
    changed = dict(document)
    if any(kind in document for kind in RESPONSES):
        changed["retry"] = dict(retry)
    for key in _LISTS:
        if key in document:
            changed[key] = [override_retry(step, retry) for step in document[key] or ()]
    if document.get("branch") is not None:
        changed["branch"] = override_retry(document["branch"], retry)
    if document.get("parallel") is not None:
        changed["parallel"] = [
            [override_retry(step, retry) for step in branch] for branch in document["parallel"]
        ]
    return changed
