r"""Matchers of Alertmanager as conditions of Tocsin, and back.

`{alertname="cpu-hot", site=~"ams.*"}` becomes
`rule == "cpu-hot" && (("site" in labels) ? labels["site"] : "").matches("^(?:ams.*)$")`.

Guarantee: a label that an alarm does not have counts as empty, as in Alertmanager. The regular
expression is evaluated by the engine of conditions, whose time is linear. `matchers_of` reads the
conditions that `condition_of` writes; any other condition has no matchers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from schemas.values.severities import severities
from tocsin.core.errors import InvalidInput

MAX_MATCHERS = 32
_MAX_LENGTH = 512
# Names of labels in Alertmanager that are fields of an alarm.
FIELDS = {"alertname": "rule", "owner": "owner", "key": "key", "instance": "instance"}
_FIELD_NAMES = {field: name for name, field in FIELDS.items()}
SEVERITY = "severity"
_TEXT = r'"(?:[^"\\]|\\.)*"'
_FILTER = re.compile(rf'\s*({_TEXT}|[^\s=!~{{}},"]+)\s*(=~|!~|!=|=)\s*({_TEXT}|[^"]*?)\s*', re.DOTALL)
_PLAIN = r"(?P<field>rule|owner|key|instance)"
_LABEL = rf'\(\((?P<in>{_TEXT}) in labels\) \? labels\[(?P<label>{_TEXT})\] : ""\)'
_CLAUSE = re.compile(
    rf"(?P<not>!?)(?:{_PLAIN}|{_LABEL})(?: (?P<op>==|!=) (?P<value>{_TEXT})|\.matches\((?P<regex>{_TEXT})\))",
    re.DOTALL,
)
_SEVERITY = re.compile(r"(?P<not>!?)\(severity in \[(?P<levels>[a-z0-9_, ]*)\]\)")


class LabelMatcher(NamedTuple):
    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True

    def __str__(self) -> str:
        sign = {(False, True): "=", (False, False): "!=", (True, True): "=~", (True, False): "!~"}
        return f"{self.name}{sign[self.is_regex, self.is_equal]}{json.dumps(self.value, ensure_ascii=False)}"


def parse_filter(text: str) -> LabelMatcher:
    """The matcher of a `filter` parameter, such as `severity=~"high|disaster"`."""
    found = _FILTER.fullmatch(text) if len(text) <= 2 * _MAX_LENGTH else None
    if found is None:
        raise InvalidInput(
            f"{text[:80]!r} is not a matcher", remedy='write name="value", with =, !=, =~ or !~'
        )
    name, sign, value = (_unquoted(found[1]), found[2], _unquoted(found[3]))
    return LabelMatcher(name, value, sign.endswith("~"), sign.startswith("="))


def condition_of(matchers: Sequence[LabelMatcher]) -> str:
    """The condition over alarms. `InvalidInput` without a matcher, or with too many or too long ones."""
    if not 1 <= len(matchers) <= MAX_MATCHERS:
        raise InvalidInput(
            f"there are {len(matchers)} matchers", remedy=f"send at least one, at most {MAX_MATCHERS}"
        )
    return " && ".join(_clause(matcher) for matcher in matchers)


def matchers_of(condition: str) -> list[LabelMatcher] | None:
    """The matchers of a condition that `condition_of` wrote; None for any other."""
    matchers: list[LabelMatcher] = []
    position = 0
    while True:
        found = _SEVERITY.match(condition, position) or _CLAUSE.match(condition, position)
        if found is None:
            return None
        matchers.append(_matcher(found))
        position = found.end()
        if position == len(condition):
            return matchers
        if not condition.startswith(" && ", position):
            return None
        position += len(" && ")


def _clause(matcher: LabelMatcher) -> str:
    if not matcher.name or len(matcher.name) > _MAX_LENGTH or len(matcher.value) > _MAX_LENGTH:
        raise InvalidInput(
            f"the matcher {str(matcher)[:80]!r} is empty or too long",
            remedy=f"use at most {_MAX_LENGTH} characters",
        )
    if "\0" in matcher.name + matcher.value:
        raise InvalidInput("a matcher has the character NUL", remedy="leave it out")
    if matcher.name == SEVERITY:
        return _severity_clause(matcher)
    name = _quoted(matcher.name)
    text = FIELDS.get(matcher.name, f'(({name} in labels) ? labels[{name}] : "")')
    if matcher.is_regex:
        return f"{'' if matcher.is_equal else '!'}{text}.matches({_quoted(f'^(?:{matcher.value})$')})"
    return f"{text} {'==' if matcher.is_equal else '!='} {_quoted(matcher.value)}"


def _severity_clause(matcher: LabelMatcher) -> str:
    """Severities are numbers in conditions. A list of levels takes the place of an expression."""
    names = matcher.value.split("|") if matcher.is_regex else [matcher.value]
    unknown = [name for name in names if name not in severities()]
    if unknown:
        raise InvalidInput(
            f"the matcher {str(matcher)[:80]!r} names no severity",
            remedy=f"use one of {', '.join(severities())}, or several separated by |",
        )
    return f"{'' if matcher.is_equal else '!'}(severity in [{', '.join(names)}])"


def _matcher(found: re.Match[str]) -> LabelMatcher:
    groups = found.groupdict()
    if groups.get("levels") is not None:
        names = groups["levels"].split(", ")
        return LabelMatcher(SEVERITY, "|".join(names), len(names) > 1, not groups["not"])
    name = _FIELD_NAMES[groups["field"]] if groups["field"] else json.loads(groups["label"])
    if groups["regex"] is not None:
        pattern = json.loads(groups["regex"])
        return LabelMatcher(name, pattern.removeprefix("^(?:").removesuffix(")$"), True, not groups["not"])
    return LabelMatcher(name, json.loads(groups["value"]), False, groups["op"] == "==")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        # Go allows escapes that JSON does not have, such as \d in a regular expression.
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])
