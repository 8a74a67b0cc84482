"""Validates a YAML document: returns a model, or problems with their positions.

Guarantee: every message names its document in the words of the file (keys and kinds, not models). A
misspelt key or kind comes with the nearest one that exists.

Most messages of pydantic are replaced: they are about inputs and types, but an author knows keys.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rules.documents.load.problems import RuleProblem
from rules.documents.load.yaml_tree import Path, YamlNode
from schemas.documents import DOCUMENT_KINDS
from schemas.documents.rule_test import RuleTestDocument
from schemas.documents.strict_model import DOCUMENT_ERROR, UNION_TAG
from schemas.error_text import choices_text, fault_text
from tocsin.core.near_name import near_name

TESTS: Mapping[str, type[BaseModel]] = {"test": RuleTestDocument}
"""The kinds in a file of rule tests."""
_MODELS = {**DOCUMENT_KINDS, **TESTS}
RENAMED_KEYS: Mapping[str, str] = {
    "edges": "transitions",
    "factor": "backoff",
    "first": "initial_interval",
    "for_clear": "keep_firing_for",
    "limit": "rate_limit",
    "longest": "max_interval",
    "most": "count",
    "retries": "retry",
}
"""Former names of keys, for the hint about an unknown key.

An entry counts where the new key is accepted.
"""


class ValidatedDocument(NamedTuple):
    kind: str
    model: BaseModel
    body: YamlNode
    """The node under the key of the kind."""
    key: YamlNode
    """The key of the kind: the start of the document."""


def validate(
    file: str, document: YamlNode, kinds: Mapping[str, type[BaseModel]] = DOCUMENT_KINDS
) -> tuple[ValidatedDocument | None, list[RuleProblem]]:
    def reject(node: YamlNode, message: str) -> tuple[None, list[RuleProblem]]:
        return None, [RuleProblem(file, node.line + 1, node.column + 1, message)]

    if not isinstance(document.value, dict) or not document.keys:
        return reject(document, f"a document must be a mapping with one kind: {', '.join(kinds)}")
    kind, key = next(iter(document.keys.items()))
    for other, other_key in document.keys.items():
        if other not in kinds:
            near = near_name(other, kinds)
            hint = f"did you mean '{near}'?" if near else f"the kinds are {', '.join(kinds)}"
            return reject(other_key, f"unknown kind '{other}', {hint}")
    if len(document.keys) > 1:
        second = list(document.keys)[1]
        return reject(
            document.keys[second], f"'{second}' next to '{kind}': separate documents with a line '---'"
        )
    body = document.members[kind]
    if not isinstance(body.value, dict):
        return reject(body if body.value is not None else key, f"'{kind}' must be a mapping with a 'name'")
    try:
        model = kinds[kind].model_validate(body.value)
    except ValidationError as error:
        return None, list(_problems(file, kind, body, key, error))
    return ValidatedDocument(kind, model, body, key), []


def title(kind: str, name: object) -> str:
    return f"{kind} '{name}'" if isinstance(name, str) else kind


def _problems(
    file: str, kind: str, body: YamlNode, key: YamlNode, error: ValidationError
) -> Iterable[RuleProblem]:
    name: object = body.value.get("name") if isinstance(body.value, dict) else None
    errors = [_without_union_tags(details) for details in error.errors(include_url=False)]
    # A misspelt required key is one mistake, not an unknown key and a missing one.
    misspelt = {
        (*details["loc"][:-1], _intended_key(details, kind))
        for details in errors
        if details["type"] == "extra_forbidden"
    }
    for details in errors:
        path: Path = details["loc"]
        if details["type"] == "missing" and path in misspelt:
            continue
        # pydantic counts a list without its invalid members, which have problems of their own.
        if details["type"] == "too_short" and _is_inside(path, errors):
            continue
        at_key = (details.get("ctx") or {}).get("at_key")
        if details["type"] == "extra_forbidden":
            node = body.key_at(path)
        elif at_key:
            node = body.key_at((*path, str(at_key)))
        elif details["type"] == "missing":
            node = body.key_at(path[:-1]) if path[:-1] else key
        elif not path:
            node = key
        else:
            node = body.at(path)
        yield RuleProblem(file, node.line + 1, node.column + 1, _message(details, kind, title(kind, name)))


def _without_union_tags(details: ErrorDetails) -> ErrorDetails:
    path = tuple(step for step in details["loc"] if not str(step).startswith(UNION_TAG))
    return {**details, "loc": path}


def _message(details: ErrorDetails, kind: str, where: str) -> str:
    path = details["loc"]
    describe = _MESSAGES.get(details["type"])
    if describe is not None:
        return describe(details, kind, where)
    if details["type"] == DOCUMENT_ERROR:
        return f"{f'{_dotted(path)!r} of ' if path else ''}{where} {details['msg']}"
    return f"'{_dotted(path)}' of {where}{fault_text(details)}"


def _is_inside(path: Path, errors: Sequence[ErrorDetails]) -> bool:
    return any(len(details["loc"]) > len(path) and details["loc"][: len(path)] == path for details in errors)


def _unknown_key(details: ErrorDetails, kind: str, where: str) -> str:
    *parent, key = details["loc"]
    intended = _intended_key(details, kind)
    if intended is None:
        hint = f"the keys are {', '.join(_keys_at(kind, tuple(parent)))}"
    elif RENAMED_KEYS.get(str(key)) == intended:
        hint = f"it is now called '{intended}'"
    else:
        hint = f"did you mean '{intended}'?"
    return f"unknown key '{key}' in {where}, {hint}"


def _intended_key(details: ErrorDetails, kind: str) -> str | None:
    """The key that an unknown key stands for: its new name, or the nearest spelling."""
    *parent, key = details["loc"]
    keys = _keys_at(kind, tuple(parent))
    if (renamed := RENAMED_KEYS.get(str(key))) in keys:
        return renamed
    return near_name(str(key), keys)


def _keys_at(kind: str, path: Path) -> list[str]:
    model: Any = _MODELS[kind]
    for step in path:
        if not isinstance(step, str):
            continue
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        # Otherwise the step is a name that the author chose, such as that of an input of a calc_rule.
        if step in fields:
            model = _model_in(fields[step].annotation)
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> Any:
    """The model inside `Model | None` or a list of lists of it."""
    pending = [annotation]
    while pending:
        part = pending.pop()
        if hasattr(part, "model_fields"):
            return part
        pending += get_args(part)
    raise TypeError(f"{annotation!r} has no keys")


def _missing_key(details: ErrorDetails, kind: str, where: str) -> str:
    parent = details["loc"][:-1]
    return f"missing key '{details['loc'][-1]}' in {f'{_dotted(parent)!r} of ' if parent else ''}{where}"


def _bad_choice(details: ErrorDetails, kind: str, where: str) -> str:
    valid = [choice.strip("'") for choice in choices_text(details).replace(" or ", ", ").split(", ")]
    near = near_name(str(details["input"]), valid)
    hint = f", did you mean '{near}'?" if near else ""
    return f"'{_dotted(details['loc'])}' of {where}{fault_text(details)}{hint}"


def _bad_text(details: ErrorDetails, kind: str, where: str) -> str:
    """An invalid name cannot identify its document."""
    path = details["loc"]
    return f"'{_dotted(path)}' of {kind if path == ('name',) else where}{fault_text(details)}"


_MESSAGES: dict[str, Callable[[ErrorDetails, str, str], str]] = {
    "extra_forbidden": _unknown_key,
    "missing": _missing_key,
    "literal_error": _bad_choice,
    "string_pattern_mismatch": _bad_text,
}


def _dotted(path: Path) -> str:
    return ".".join(str(step) for step in path)
