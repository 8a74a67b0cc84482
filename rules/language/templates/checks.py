"""Checks a template without data, when a rule is loaded.

Guarantee: a template that passes compiles and uses only names that will have a value. Each problem
has its line and column inside the template. The message about a misspelt word suggests the nearest
one that exists.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from jinja2 import TemplateSyntaxError, meta, nodes

from rules.language.templates.compile import Part, parse
from rules.language.templates.filters import local
from rules.language.templates.structure import TemplateProblem, all_nodes, problem_at, structure_problems
from schemas.values.template_text import MAX_TEMPLATE_LENGTH
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import EPOCH
from tocsin.core.near_name import near_name

_NOT_CLOSED = re.compile(r"block that needs to be closed is '(\w+)'")
_UNKNOWN_TAG = re.compile(r"unknown tag '(\w+)'")


Members = Mapping[str, Collection[str]]


def check_template(
    source: str,
    names: Collection[str],
    *,
    scalars: Collection[str] = (),
    members: Members = MappingProxyType({}),
    part: Part = "text",
) -> list[TemplateProblem]:
    """Problems of a template. `names` have a value when it is filled; those in `scalars` have no
    parts, and those in `members` only these."""
    if len(source) > MAX_TEMPLATE_LENGTH:
        return [
            TemplateProblem(1, 1, f"the template is longer than {MAX_TEMPLATE_LENGTH} characters, shorten it")
        ]
    if "{" not in source:
        return []
    try:
        tree = parse(source, part)
        problems = structure_problems(tree, scalars)
    except TemplateSyntaxError as error:
        return [problem_at(error.lineno, _syntax_message(str(error.message)))]
    except RecursionError:
        return [TemplateProblem(1, 1, "the template is nested too deep, write it simpler")]
    except ValueError:
        return [TemplateProblem(1, 1, "the template has a number that is too long, shorten it")]
    return problems or sorted(
        [*_name_problems(tree, names), *_member_problems(tree, members), *_literal_problems(tree)]
    )


def _syntax_message(message: str) -> str:
    open_block, tag = _NOT_CLOSED.search(message), _UNKNOWN_TAG.search(message)
    if open_block:
        return f"'{{% {open_block[1]} %}}' is not closed: write '{{% end{open_block[1]} %}}'"
    if tag:
        return f"unknown tag '{tag[1]}', there are if, for and set"
    message = message.rstrip(".").replace("'end of print statement'", "'}}'")
    message = message.replace("'end of statement block'", "'%}'").replace(
        "'end of template'", "end of template"
    )
    return f"{message[:1].lower()}{message[1:]}"


def _member_problems(tree: nodes.Template, members: Members) -> Iterable[TemplateProblem]:
    assigned = {node.name for node in all_nodes(tree) if isinstance(node, nodes.Name) and node.ctx == "store"}
    for node in all_nodes(tree):
        if not isinstance(node, nodes.Getattr) or not isinstance(node.node, nodes.Name):
            continue
        name, known = node.node.name, members.get(node.node.name)
        # A loop may use the name for its own variable.
        if known is None or name in assigned or node.attr in known:
            continue
        near = near_name(node.attr, known)
        if name == "answers":
            hint = f"did you mean '{near}'?" if near else "no step before this one has this name"
            yield problem_at(node.node.lineno, f"unknown answer '{node.attr}', {hint}")
        else:
            hint = f"did you mean '{near}'?" if near else f"there are {', '.join(known)}"
            yield problem_at(node.node.lineno, f"'{name}' has no '{node.attr}', {hint}")


def _literal_problems(tree: nodes.Template) -> Iterable[TemplateProblem]:
    """Timezones and formats that are written in the template, tried with some instant."""
    for node in all_nodes(tree):
        if not isinstance(node, nodes.Filter) or node.name != "local":
            continue
        arguments = [*node.args, *(keyword.value for keyword in node.kwargs)]
        if not all(isinstance(argument, nodes.Const) for argument in arguments):
            continue
        values = [argument.value for argument in node.args if isinstance(argument, nodes.Const)]
        named = {
            str(keyword.key): keyword.value.value
            for keyword in node.kwargs
            if isinstance(keyword.value, nodes.Const)
        }
        try:
            local(EPOCH, *values, **named)
        except InvalidInput as error:
            yield problem_at(node.lineno, str(error))
        except TypeError:
            yield problem_at(node.lineno, "'local' takes a timezone and a format")


def _name_problems(tree: nodes.Template, names: Collection[str]) -> Iterable[TemplateProblem]:
    read = [node for node in all_nodes(tree) if isinstance(node, nodes.Name) and node.ctx == "load"]
    known = {*names, "range"}
    if all(name.name in known for name in read):
        return
    unknown = meta.find_undeclared_variables(tree) - known
    for node in read:
        if node.name in unknown:
            near = near_name(node.name, names)
            hint = f"did you mean '{near}'?" if near else f"known are {', '.join(names)}"
            yield problem_at(node.lineno, f"unknown name '{node.name}', {hint}")
