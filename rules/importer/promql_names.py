"""Metrics, labels and matchers of Prometheus, as keys, owners and CEL conditions. Pure.

A metric is a key. The label that names the source of a metric (by default `instance`) is the owner.
A label that is missing equals an empty text in PromQL, so every condition tests for its presence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any


def cel_where(matchers: Iterable[Any], owner_label: str) -> str:
    """The condition of a selector. Empty: it selects every series of the metric."""
    return " && ".join(_matcher(matcher, owner_label) for matcher in matchers)


def _matcher(matcher: Any, owner_label: str) -> str:
    operator, name, value = str(matcher.op).removeprefix("MatchOp."), matcher.name, matcher.value
    if name == owner_label:
        return _compared(operator, "owner", value)
    quoted = json.dumps(name)
    present = f"{quoted} in labels"
    if operator in ("Equal", "NotEqual") and value == "":
        return present if operator == "NotEqual" else f"!({present})"
    compared = _compared(operator, f"labels[{quoted}]", value)
    return (
        f"(!({present}) || {compared})" if _selects_missing(operator, value) else f"{present} && {compared}"
    )


def _selects_missing(operator: str, value: str) -> bool:
    """Whether the matcher selects a series without the label."""
    if operator in ("Equal", "NotEqual"):
        return (operator == "Equal") == (value == "")
    try:
        matches_empty = re.fullmatch(value, "") is not None
    except re.error:
        matches_empty = False
    return matches_empty == (operator == "Re")


def _compared(operator: str, subject: str, value: str) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if operator == "Equal":
        return f"{subject} == {text}"
    if operator == "NotEqual":
        return f"{subject} != {text}"
    pattern = json.dumps(f"^(?:{value})$", ensure_ascii=False)
    matches = f"{subject}.matches({pattern})"
    return matches if operator == "Re" else f"!{matches}"
