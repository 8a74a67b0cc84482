"""The tokens of a query: `owner:plant-* type:alarm-opened,alarm-resolved -rule:noisy "pump 7"`.

A token is `field:value`. Several values of one token, separated by commas, are alternatives, and all
tokens must hold. `-` before a token negates it. A value that ends with `*` is the beginning of a text.
A word without a field is a part of the owner, of the type or of a name, in upper or lower case. Quotes
keep spaces, colons and commas in one value.

On failure: `InvalidInput`, which names the token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from schemas.values.severities import level
from tocsin.api.live.record import FIELDS, KINDS, LiveRecord
from tocsin.core.errors import InvalidInput
from tocsin.core.near_name import near_name
from tocsin.policy import matches

MAX_LENGTH = 1000
MAX_TOKENS = 20
_FIELDS = ("kind", "severity", *FIELDS)
_TOKEN = re.compile(
    r"""\s*(?P<text>(?P<minus>-)?(?:(?P<field>[a-z_]+):)?(?P<values>(?:"[^"]*"|[^\s"])+))(?=\s|$)"""
)
_VALUE = re.compile(r'((?:"[^"]*"|[^,"])+)')
_SEARCHED = ("owner", "type", "schedule", "rule", "action", "key")


@dataclass(frozen=True)
class QueryToken:
    field: str | None
    values: tuple[str, ...]
    is_negated: bool = False

    def holds(self, record: LiveRecord) -> bool:
        return self._is_met(record) is not self.is_negated

    def _is_met(self, record: LiveRecord) -> bool:
        if self.field is None:
            return any(self.values[0] in record.fields.get(name, "").casefold() for name in _SEARCHED)
        text = record.kind if self.field == "kind" else record.fields.get(self.field, "")
        return any(matches(text, value) for value in self.values)


@dataclass(frozen=True)
class Query:
    tokens: tuple[QueryToken, ...] = ()

    def selects(self, record: LiveRecord) -> bool:
        return all(token.holds(record) for token in self.tokens)


def parse_query(text: str) -> Query:
    if len(text) > MAX_LENGTH:
        raise InvalidInput(
            f"the query has {len(text)} characters", remedy=f"use at most {MAX_LENGTH} characters"
        )
    tokens: list[QueryToken] = []
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidInput(
                f"the query cannot be read at {text[position:].strip()[:40]!r}",
                remedy='write tokens such as owner:plant-7, with quotes in pairs: owner:"plant 7"',
            )
        tokens.append(_token(match))
        position = match.end()
    if len(tokens) > MAX_TOKENS:
        raise InvalidInput(f"the query has {len(tokens)} tokens", remedy=f"use at most {MAX_TOKENS}")
    return Query(tuple(tokens))


def _token(match: re.Match[str]) -> QueryToken:
    field = match["field"]
    is_negated = match["minus"] is not None
    if field is None:
        return QueryToken(None, (match["values"].replace('"', "").casefold(),), is_negated)
    if field not in _FIELDS:
        near = near_name(field, _FIELDS)
        raise InvalidInput(
            f"unknown field {field!r} in the token {match['text']!r}",
            remedy=f"did you mean {near!r}?" if near else f"use one of {', '.join(_FIELDS)}",
        )
    values = tuple(value.replace('"', "") for value in _VALUE.findall(match["values"]))
    if not values:
        raise InvalidInput(f"the token {match['text']!r} has no value", remedy=f"write {field}:VALUE")
    return QueryToken(field, tuple(_checked(field, value) for value in values), is_negated)


def _checked(field: str, value: str) -> str:
    if field == "severity":
        return str(level(value))
    if field == "kind" and value not in KINDS:
        raise InvalidInput(f"unknown kind {value!r}", remedy=f"use one of {', '.join(KINDS)}")
    return value
