"""Checks of rules over series: types, channels and conditions.

Guarantee: the conditions of an event_rule that passes are valid for the declared types of its
series. The channels and types that documents refer to exist, no two types claim the same key, and a
rule that waits for missing data has a series that is watched.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from rules.documents.load.problems import RuleProblem, unknown_name
from rules.documents.load.source import ReadDocuments, SourceDocument
from rules.documents.load.yaml_tree import Path
from rules.engine import Rule, RuleInvalid, TypeIndex
from schemas.documents import (
    DOCUMENT_KINDS,
    ActionRuleDocument,
    ChannelDocument,
    DatapointTypeDocument,
    EventRuleDocument,
    HeartbeatDocument,
    SystemDocument,
)
from schemas.documents.event_rule import FIRE_KEYS
from schemas.values.key_pattern import overlap

Names = Mapping[str, set[str]]
_KIND_OF_MODEL = {model: kind for kind, model in DOCUMENT_KINDS.items()}


class _SeriesContext(NamedTuple):
    names: Names
    types: TypeIndex
    is_complete: bool
    """False if a syntax error cut a file short: it may contain the missing documents."""


def series_problems(read: ReadDocuments, names: Names, applied: Sequence[BaseModel]) -> Iterable[RuleProblem]:
    new_types = [document for document in read.documents if isinstance(document.model, DatapointTypeDocument)]
    kept = kept_documents(read, applied)
    kept_types = [model for model in kept if isinstance(model, DatapointTypeDocument)]
    types = TypeIndex([*kept_types, *(_type(document) for document in new_types)])
    context = _SeriesContext(names, types, not read.is_cut_short)
    yield from _same_key_problems(new_types, kept_types)
    yield from _broken_rule_problems(new_types, applied, kept, types)
    for document in read.documents:
        model = document.model
        if isinstance(model, EventRuleDocument):
            yield from _rule_problems(document, model, context)
        if isinstance(
            model, EventRuleDocument | DatapointTypeDocument | ActionRuleDocument | HeartbeatDocument
        ):
            channels: list[tuple[Path, str]] = [
                (("notify", index), name) for index, name in enumerate(model.notify)
            ]
            yield from _reference_problems(document, "channel", channels, context)
        if isinstance(model, ChannelDocument) and model.fallback is not None:
            yield from _reference_problems(document, "channel", [(("fallback",), model.fallback)], context)
            yield from _fallback_problems(document, model.fallback, read, kept)
        if isinstance(model, SystemDocument):
            member_types: list[tuple[Path, str]] = [
                (("members", index, "type"), member.type)
                for index, member in enumerate(model.members)
                if member.type
            ]
            yield from _reference_problems(document, "datapoint_type", member_types, context)


def kept_documents(read: ReadDocuments, applied: Sequence[BaseModel]) -> list[BaseModel]:
    """The applied documents that are not in the files."""
    return [
        model
        for model in applied
        if (_KIND_OF_MODEL.get(type(model)), getattr(model, "name", "")) not in read.declared
    ]


def _fallback_problems(
    document: SourceDocument, fallback: str, read: ReadDocuments, kept: Sequence[BaseModel]
) -> Iterable[RuleProblem]:
    """A fallback has no fallback of its own: a failure would send a message on and on."""
    models = [*kept, *(other.model for other in read.documents)]
    for model in models:
        if isinstance(model, ChannelDocument) and model.name == fallback and model.fallback is not None:
            message = (
                f"{document.title} has the fallback '{fallback}', which has a fallback itself: remove one"
            )
            yield document.problem(document.body.at(("fallback",)), message)


def _broken_rule_problems(
    new_types: Sequence[SourceDocument],
    applied: Sequence[BaseModel],
    kept: Sequence[BaseModel],
    types: TypeIndex,
) -> Iterable[RuleProblem]:
    """A new type must not break a rule that is applied and not in these files."""
    before = TypeIndex(model for model in applied if isinstance(model, DatapointTypeDocument))
    for rule in kept:
        if not isinstance(rule, EventRuleDocument) or rule.datapoint is None:
            continue
        if types.kind(rule.datapoint) == before.kind(rule.datapoint):
            continue
        try:
            Rule(rule, types)
        except RuleInvalid as invalid:
            cause = next((type for type in new_types if overlap(_type(type).key, rule.datapoint)), None)
            if cause is not None:
                message = (
                    f"{cause.title} would break event_rule '{rule.name}', which is applied: '{invalid.key}': "
                    f"{invalid.errors[0].message}: change both in one apply"
                )
                yield cause.problem(cause.body.at(("value",)), message)


def _type(document: SourceDocument) -> DatapointTypeDocument:
    assert isinstance(document.model, DatapointTypeDocument)
    return document.model


def _rule_problems(
    document: SourceDocument, model: EventRuleDocument, context: _SeriesContext
) -> Iterable[RuleProblem]:
    try:
        rule = Rule(model, context.types)
    except RuleInvalid as invalid:
        yield from _condition_problems(document, model, invalid)
        return
    if rule.reads_freshness and model.no_data != "keep":
        message = f"{document.title} reads freshness or age itself: remove 'no_data'"
        yield document.problem(document.body.key_at(("no_data",)), message)
    if rule.window is not None and rule.window.reduce != "count":
        yield from _text_window_problems(document, model, context)
    key = "absent" if model.absent else "no_data" if model.no_data != "keep" else "fire"
    if key != "fire" or rule.reads_freshness:
        yield from _unwatched_problems(document, rule, key, context)


def _text_window_problems(
    document: SourceDocument, model: EventRuleDocument, context: _SeriesContext
) -> Iterable[RuleProblem]:
    """A text can only be counted: any other window of texts has no result, ever."""
    kind = context.types.kind(model.datapoint or "")
    if kind not in (None, "number", "bool"):
        assert model.window is not None
        message = (
            f"'window.reduce: {model.window.reduce}' of {document.title} needs numbers, and its datapoint_type has "
            f"'value: {kind}': use 'count', or change the type"
        )
        yield document.problem(document.body.at(("window", "reduce")), message)


def _condition_problems(
    document: SourceDocument, model: EventRuleDocument, invalid: RuleInvalid
) -> Iterable[RuleProblem]:
    if invalid.key == "fire" and model.fire is None:
        # Tocsin wrote the condition, so the position is that of the shorthand.
        key = next(name for name in FIRE_KEYS if getattr(model, name) is not None)
        message = f"'{key}' of {document.title} cannot be used: {invalid.errors[0].message}"
        yield document.problem(document.body.at((key,)), message)
        return
    yield from document.problems_inside((invalid.key,), invalid.errors)


def _unwatched_problems(
    document: SourceDocument, rule: Rule, key: str, context: _SeriesContext
) -> Iterable[RuleProblem]:
    pattern, types = rule.document.datapoint, context.types
    if pattern is None or not context.is_complete or types.is_watched(pattern):
        return
    message = (
        f"'{key}' of {document.title} waits for missing data, and no datapoint_type with 'interval' or 'heartbeat' "
        f"covers '{pattern}': declare one"
    )
    yield document.problem(document.body.at((key,)), message)


def _same_key_problems(
    new_types: Sequence[SourceDocument], kept_types: Sequence[DatapointTypeDocument]
) -> Iterable[RuleProblem]:
    first = {type.key: type.name for type in kept_types}
    for document in new_types:
        key = _type(document).key
        other = first.setdefault(key, document.name)
        if other != document.name:
            message = f"{document.title} claims '{key}', which datapoint_type '{other}' has: keep one"
            yield document.problem(document.body.at(("key",)), message)


def _reference_problems(
    document: SourceDocument, kind: str, references: Sequence[tuple[Path, str]], context: _SeriesContext
) -> Iterable[RuleProblem]:
    if not context.is_complete:
        return
    known = context.names.get(kind, set())
    for path, name in references:
        if name not in known:
            yield document.problem(document.body.at(path), unknown_name(kind, name, document.title, known))
