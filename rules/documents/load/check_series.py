"""What can only be known about rules over series when all documents are there: types, channels, conditions.

Guarantee: the conditions of an event_rule that passes are right for the declared types of its series; the
channels and types that documents name exist; no two types claim the same key; a rule that waits for silence has
a series that is watched.

Why silence is only checked when some types are known: a file of rules alone, checked away from its database, says
nothing about which types exist.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from rules.documents.load.locations import place_in_file
from rules.documents.load.problems import Problem
from rules.documents.load.source import Placed, Read
from rules.engine import Rule, RuleInvalid, TypeIndex
from schemas.documents import KINDS, DatapointTypeDocument, EventRuleDocument, SystemDocument
from schemas.documents.event_rule import FIRE_KEYS
from schemas.values.key_pattern import overlap

Names = Mapping[str, set[str]]
_KINDS = {model: kind for kind, model in KINDS.items()}


class _Known(NamedTuple):
    names: Names
    types: TypeIndex
    is_complete: bool
    """No file was cut short by a syntax error, which may hold whatever seems to be missing."""


def series_problems(read: Read, names: Names, applied: Sequence[BaseModel]) -> Iterable[Problem]:
    placed = [one for one in read.placed if isinstance(one.document.model, DatapointTypeDocument)]
    standing = [
        one for one in applied if (_KINDS.get(type(one)), getattr(one, "name", "")) not in read.declared
    ]
    earlier = [one for one in standing if isinstance(one, DatapointTypeDocument)]
    types = TypeIndex([*earlier, *(_type(one) for one in placed)])
    known = _Known(names, types, not read.is_cut_short)
    yield from _same_keys(placed, earlier)
    yield from _broken_rules(placed, applied, standing, types)
    for one in read.placed:
        model = one.document.model
        if isinstance(model, EventRuleDocument):
            yield from _rule_problems(one, model, known)
        if isinstance(model, EventRuleDocument | DatapointTypeDocument) and known.is_complete:
            named = [(("notify", place), name) for place, name in enumerate(model.notify)]
            yield from _unknown(one, "channel", named, known)
        if isinstance(model, SystemDocument) and known.is_complete:
            members = enumerate(model.members)
            typed = [(("members", place, "type"), member.type) for place, member in members if member.type]
            yield from _unknown(one, "datapoint_type", typed, known)


def _broken_rules(
    placed: Sequence[Placed], applied: Sequence[BaseModel], standing: Sequence[BaseModel], types: TypeIndex
) -> Iterable[Problem]:
    """A type that changes what values are may not break a rule that is applied and not in these files."""
    before = TypeIndex(one for one in applied if isinstance(one, DatapointTypeDocument))
    for rule in standing:
        if not isinstance(rule, EventRuleDocument) or rule.datapoint is None:
            continue
        if types.kind(rule.datapoint) == before.kind(rule.datapoint):
            continue
        try:
            Rule(rule, types)
        except RuleInvalid as invalid:
            guilty = next((one for one in placed if overlap(_type(one).key, rule.datapoint)), None)
            if guilty is not None:
                message = (
                    f"{guilty.title} would break event_rule '{rule.name}', which is applied: '{invalid.key}': "
                    f"{invalid.errors[0].message}: change both in one apply"
                )
                yield guilty.problem(guilty.document.body.at(("value",)), message)


def _type(one: Placed) -> DatapointTypeDocument:
    assert isinstance(one.document.model, DatapointTypeDocument)
    return one.document.model


def _rule_problems(one: Placed, model: EventRuleDocument, known: _Known) -> Iterable[Problem]:
    try:
        rule = Rule(model, known.types)
    except RuleInvalid as invalid:
        yield from _condition_problems(one, model, invalid)
        return
    if rule.reads_freshness and model.no_data != "keep":
        message = f"{one.title} reads freshness or age itself: remove 'no_data'"
        yield one.problem(one.document.body.key_at(("no_data",)), message)
    waits = "absent" if model.absent else "no_data" if model.no_data != "keep" else "fire"
    if waits != "fire" or rule.reads_freshness:
        yield from _unwatched(one, rule, waits, known)


def _condition_problems(one: Placed, model: EventRuleDocument, invalid: RuleInvalid) -> Iterable[Problem]:
    key = invalid.key
    if key == "fire" and model.fire is None:
        # The text is ours, so the place is that of the shorthand.
        key = next(name for name in FIRE_KEYS if getattr(model, name) is not None)
        message = f"'{key}' of {one.title} cannot be used: {invalid.errors[0].message}"
        yield one.problem(one.document.body.at((key,)), message)
        return
    node = one.document.body.at((key,))
    for error in invalid.errors:
        line, column = place_in_file(one.lines, node, error.line, error.column)
        yield Problem(one.file, line, column, f"'{key}' of {one.title}: {error.message}")


def _unwatched(one: Placed, rule: Rule, key: str, known: _Known) -> Iterable[Problem]:
    pattern = rule.document.datapoint
    if pattern is None or not known.is_complete or not known.types.types or known.types.is_watched(pattern):
        return
    message = (
        f"'{key}' of {one.title} waits for silence, and no datapoint_type with 'interval' or 'heartbeat' covers "
        f"'{pattern}': declare one"
    )
    yield one.problem(one.document.body.at((key,)), message)


def _same_keys(placed: Sequence[Placed], earlier: Sequence[DatapointTypeDocument]) -> Iterable[Problem]:
    first = {one.key: one.name for one in earlier}
    for one in placed:
        other = first.setdefault(_type(one).key, one.name)
        if other != one.name:
            message = f"{one.title} claims '{_type(one).key}', which datapoint_type '{other}' has: keep one"
            yield one.problem(one.document.body.at(("key",)), message)


def _unknown(
    one: Placed, kind: str, named: Sequence[tuple[tuple[str | int, ...], str]], known: _Known
) -> Iterable[Problem]:
    of_kind = known.names.get(kind, set())
    for path, name in named:
        if name not in of_kind:
            near = difflib.get_close_matches(name, sorted(of_kind), n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"no {kind} of this name is defined"
            yield one.problem(one.document.body.at(path), f"unknown {kind} '{name}' in {one.title}, {hint}")
