"""Documents from the fields of forms, and as YAML. The loader checks what they say. Pure.

A form edits only the keys that it shows: all others of the document stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.documents.yaml_text import document_text
from tocsin.console.form import Form
from tocsin.core.errors import InvalidInput

CONDITIONS = ("above", "below", "rate_increase", "absent")
"""The conditions of the form; others are written in YAML."""
CHANNEL_TYPES = ("webhook", "slack", "email")
Document = dict[str, Any]


def rule_from(form: Form, before: Mapping[str, Any] | None) -> Document:
    """The `event_rule` of a form."""
    document: Document = {**(before or {}), "name": form.text("name")}
    for key in ("title", "description", "datapoint", "severity", "message"):
        _put(document, key, form.text(key))
    for key in ("for", "keep_firing_for", "repeat"):
        _put(document, key, form.text(key))
    condition = form.text("condition")
    if condition in CONDITIONS:
        for key in (*CONDITIONS, "fire"):
            document.pop(key, None)
        text = form.text("threshold")
        document[condition] = text if condition == "absent" else _number(text, "threshold")
    notify = [name.strip() for name in form.text("notify").split(",") if name.strip()]
    _put(document, "notify", notify)
    document["enabled"] = form.text("enabled") == "yes"
    return document


def channel_from(form: Form, before: Mapping[str, Any] | None) -> Document:
    """The `channel` of a form. An address that is left empty stays as it is."""
    document: Document = {**(before or {}), "name": form.text("name")}
    kind, target = form.text("type"), form.text("target")
    if kind not in CHANNEL_TYPES:
        kind = ""
    if target and kind:
        for key in (*CHANNEL_TYPES, "apprise", "pagerduty"):
            document.pop(key, None)
        document[kind] = _target(kind, target, form)
    document["enabled"] = form.text("enabled") == "yes"
    document["send_resolved"] = form.text("send_resolved") == "yes"
    _put(document, "fallback", form.text("fallback"))
    return document


def _target(kind: str, text: str, form: Form) -> Document:
    if kind == "email":
        to = [address.strip() for address in text.split(",") if address.strip()]
        return {"smtp": {"host": form.text("smtp")}, "from": form.text("from"), "to": to}
    if text.startswith("secret:"):
        return {"url": {"secret": text.removeprefix("secret:").strip()}}
    return {"url": text}


def _put(document: Document, key: str, value: Any) -> None:
    """Set a key, or remove it where the form leaves it empty."""
    if value:
        document[key] = value
    else:
        document.pop(key, None)


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidInput(f"{name} is {text[:40]!r}", remedy="write a number, such as 65") from None
    return int(number) if number.is_integer() else number


def yaml_of(kind: str, document: Mapping[str, Any]) -> str:
    return document_text(kind, dict(document))
