"""Translates compile errors of the engine for authors of rules.

Guarantee: every error keeps its position. The message about a common mistake has the correct form:
of a misspelt name, a level in quotes, a text without quotes, `and` for `&&`, `=` for `==`.

Why only the first syntax error is reported: the others follow from it. Why the text is parsed again
without type checks: the message of the engine names types only, and a good hint needs the operands.

On failure: an unknown error text is passed on unchanged.
"""

import re
from collections.abc import Iterable

from cel_expr_python import cel

from rules.language.cel.checked_ast import CALL, CONST, IDENT, AstNode, Tree, decode, walk
from rules.language.cel.environment import plain_name
from rules.language.cel.errors import ExpressionError, offset_of
from schemas.values.severities import severities
from tocsin.core.near_name import near_name

_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_OVERLOAD = re.compile(r"found no matching overload for '([^']*)' applied to '\((.*)\)'")
# Separates operands, not the parameters of a type such as map(string, dyn).
_COMMA = re.compile(r", (?![^(]*\))")
_MISMATCHED = re.compile(r"Syntax error: (?:mismatched|extraneous) input '(.*)' expecting ")
_UNRECOGNISED = re.compile(r"Syntax error: token recognition error at: '(.*?)'?$")

_MACROS_REMOVED = ("map", "filter")
_FUNCTIONS = (
    *("size", "matches", "contains", "startsWith", "endsWith", "int", "uint", "double", "string", "bool"),
    *("timestamp", "duration", "has", "exists", "exists_one", "all", "dyn", "type", "bytes"),
    *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
    *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
)
_WORD_OPERATORS = {"and": "&&", "or": "||", "AND": "&&", "OR": "||"}
_TYPE_NAMES = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}


def explain(env: cel.Env, variables: Iterable[str], text: str, failure: str) -> list[ExpressionError]:
    if "recursion" in failure:
        return [ExpressionError(1, 1, "the condition is nested too deep, at most 32 levels are accepted")]
    errors = [(int(line), int(column), message) for line, column, message in _ERROR.findall(failure)]
    if not errors:
        return [ExpressionError(1, 1, failure.strip().split("\n")[0])]
    removed = [error for error in errors if _names_removed_macro(error[2])]
    if removed:
        # The engine also reports the variable of a removed macro as undeclared, which is no other
        # mistake.
        errors = removed[:1]
    elif "Syntax error" in errors[0][2]:
        errors = errors[:1]
    operands = _operands_by_offset(env, text)
    names = (*variables, *severities())
    return [
        ExpressionError(
            line, column, _translate(text, offset_of(text, line, column), message, operands, names)
        )
        for line, column, message in sorted(set(errors))
    ]


def _translate(
    text: str, offset: int, message: str, operands: dict[int, AstNode], names: tuple[str, ...]
) -> str:
    undeclared = _UNDECLARED.match(message)
    if undeclared:
        return _undeclared(text, offset, undeclared.group(1), names)
    overload = _OVERLOAD.match(message)
    if overload:
        types = [_TYPE_NAMES.get(name, name) for name in _COMMA.split(overload.group(2))]
        return _wrong_types(overload.group(1), types, operands.get(offset))
    if message.startswith("Syntax error"):
        return _syntax(message, text[:offset].split())
    return message


def _undeclared(text: str, offset: int, name: str, names: tuple[str, ...]) -> str:
    is_call = text[offset : offset + 1] == "("
    if is_call and name in _MACROS_REMOVED:
        return f"'{name}' is not available in conditions, use 'exists' or 'all'"
    if is_call:
        near = near_name(name, _FUNCTIONS)
        hint = f", did you mean '{near}'?" if near else ""
        return f"unknown function '{name}'{hint}"
    near = near_name(name, names, cutoff=0.65)
    hint = f"did you mean '{near}'?" if near else f'write "{name}" if it is a text'
    return f"undeclared reference to '{name}', {hint}"


def _wrong_types(function: str, types: list[str], call: AstNode | None) -> str:
    operator = function.strip("_").replace("@", "")
    if len(types) != 2 or not (function.startswith("_") or function == "@in"):
        return f"'{operator}' cannot be applied to {' and '.join(types)}"
    if function == "_+_" and types[0] == types[1]:
        return f"'+' cannot join values of type {types[0]} in a condition, compare the parts instead"
    message = f"'{operator}' cannot be applied to {types[0]} and {types[1]}"
    hint = _operand_hint(types, call)
    return f"{message}, {hint}" if hint else message


def _operand_hint(types: list[str], call: AstNode | None) -> str:
    operands = call.children if call is not None and len(call.children) == 2 else []
    names = [plain_name(operand.name) for operand in operands if operand.kind == IDENT]
    if "severity" in names and any("string" in name for name in types):
        return "compare with a level: severity >= high"
    if set(types) == {"int", "double"}:
        number = next((node.value for node in operands if node.kind == CONST), 1.0)
        if isinstance(number, int):
            return f"write {number}.0"
        whole = int(number) if isinstance(number, float) and abs(number) < 2**53 else 1
        return f"write {whole} or double({names[0] if names else 'x'})"
    if "timestamp" in types and "string" in types:
        return 'write timestamp("2026-01-01T00:00:00Z")'
    if "duration" in types and {"string", "int", "double"} & set(types):
        return 'write duration("90s")'
    if set(types) == {"string", "int"} and any(node.kind == CONST for node in operands):
        return "put the value in quotes" if names else ""
    return ""


def _syntax(message: str, words_before: list[str]) -> str:
    mismatched = _MISMATCHED.match(message)
    if mismatched:
        token = mismatched.group(1)
        if token == "<EOF>":  # noqa: S105 a token of the grammar
            return "the condition ends too early"
        if token in _WORD_OPERATORS:
            return f"unexpected '{token}', write {_WORD_OPERATORS[token]}"
        if words_before[-1:] == ["not"]:
            return f"unexpected '{token}' after 'not', write !(...)"
        return f"unexpected '{token}'"
    unrecognised = _UNRECOGNISED.match(message)
    if unrecognised:
        token = unrecognised.group(1)
        if token.strip() == "=":
            return "unexpected '=', write == to compare"
        if token[:1] in "'\"":
            return f"unfinished text {token}, close its quote and double its backslashes"
        return f"unexpected {token.strip()!r}"
    return message.removeprefix("Syntax error: ")


def _names_removed_macro(message: str) -> bool:
    undeclared = _UNDECLARED.match(message)
    return undeclared is not None and undeclared.group(1) in _MACROS_REMOVED


def _operands_by_offset(env: cel.Env, text: str) -> dict[int, AstNode]:
    try:
        tree: Tree = decode(env.compile(text, disable_check=True).serialize())
    except RuntimeError:
        return {}
    return {tree.offsets.get(node.id, -1): node for node in walk(tree.root) if node.kind == CALL}
