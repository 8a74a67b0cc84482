"""Lineage: the action_rules that led to an event. It stops loops. Pure.

Guarantee: an event that a run emits carries the rules that led to it, and so does a message that a
run publishes (header `Tocsin-Lineage`), a datapoint of a step `record` or `probe` included. A service
that answers such a message with an event passes the header on. A transition of an alarm inherits the
lineage of the datapoint or event that caused it, also if a sustain lies between them. A rule in the
lineage of an event is not started by it again, and no rule is started at a depth of `MAX_DEPTH`;
`suppression` returns the reason.

An ordinary datapoint has no header, and nothing is stored for it.

Why not the correlation id alone: an alarm that opens and resolves has one correlation id, and a
rule may react to both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from schemas.wire.subjects import text_of, token

LINEAGE_HEADER = "Tocsin-Lineage"
MAX_DEPTH = 16
NO_LINEAGES: Mapping[int, tuple[str, ...]] = MappingProxyType({})
_MAX_TEXT_LENGTH = 8_192
_TOKEN = re.compile(r"(?:[A-Za-z0-9_-]|%[0-7][0-9A-F])+")


def lineage_text(lineage: Sequence[str]) -> str:
    """The value of the header `Tocsin-Lineage`."""
    return ",".join(token(rule) for rule in lineage)


def parse_lineage(text: str) -> tuple[str, ...]:
    """The lineage in a header, without parts that Tocsin cannot have written."""
    tokens = [part for part in text[:_MAX_TEXT_LENGTH].split(",") if part]
    return tuple(text_of(part) for part in tokens[:MAX_DEPTH] if _TOKEN.fullmatch(part))


def suppression(rule: str, lineage: Sequence[str]) -> str | None:
    """Why an event of this lineage must not start a rule; None if it may."""
    if rule in lineage:
        return f"suppressed: it would start itself again, {' -> '.join((*lineage, rule))}"
    if len(lineage) >= MAX_DEPTH:
        return (
            f"suppressed: {len(lineage)} rules led to this event, at most {MAX_DEPTH} may follow each other"
        )
    return None
