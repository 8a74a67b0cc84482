"""The parts of Jinja that a template may use.

Guarantee: a template that passes has only parts whose work and memory the sandbox limits: output,
`if`, `for` and `set`, known filters and tests, and no call except `range`. A template with any
other part is rejected before it is compiled.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from jinja2 import nodes

from rules.language.templates.filters import FILTERS, TESTS
from rules.language.templates.lexer import TokenPosition
from tocsin.core.near_name import near_name

_ACCEPTED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Assign, nodes.Name),
    *(nodes.Const, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test, nodes.Compare),
    *(nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos, nodes.Add, nodes.Sub, nodes.Mul),
    *(nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Concat, nodes.CondExpr, nodes.Keyword, nodes.Pair),
    nodes.Scope,
)
_LITERALS = (nodes.List, nodes.Tuple, nodes.Dict)
_PARTS_OF_LITERALS = (*_LITERALS, nodes.Const, nodes.Pair, nodes.Neg)
# Templates are compiled to Python, which accepts 200 nested brackets and 20 nested loops. A loop
# counts as four levels, so that at most 15 are nested.
_MAX_DEPTH = 60
_LEVELS_OF_LOOP = 4
_JINJA_NAMES = frozenset(("self", "super", "caller", "varargs", "kwargs"))
# Tags that are not named like the class of their node.
_TAGS: dict[type[nodes.Node], str] = {
    nodes.CallBlock: "call",
    nodes.FilterBlock: "filter",
    nodes.AssignBlock: "set ... endset",
    nodes.FromImport: "from",
    nodes.ScopedEvalContextModifier: "autoescape",
}


class TemplateProblem(NamedTuple):
    """`line` and `column` count from 1 inside the template."""

    line: int
    column: int
    message: str


def problem_at(position: int, message: str) -> TemplateProblem:
    return TemplateProblem(
        int(position), position.column if isinstance(position, TokenPosition) else 1, message
    )


def all_nodes(tree: nodes.Node) -> Iterator[nodes.Node]:
    return (node for node, _ in _with_depth(tree))


def structure_problems(tree: nodes.Template, scalars: Collection[str] = ()) -> list[TemplateProblem]:
    """Problems of a parsed template. `scalars` are names whose values have no fields:
    `{{ name.x }}` is an error."""
    problems: list[TemplateProblem] = []
    for node, depth in _with_depth(tree):
        if depth > _MAX_DEPTH:
            return [problem_at(node.lineno, "the template is nested too deep here, write it simpler")]
        problems += _node_problems(node, scalars)
    return sorted(problems)


def _with_depth(tree: nodes.Node) -> Iterator[tuple[nodes.Node, int]]:
    pending = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        deeper = depth + (_LEVELS_OF_LOOP if isinstance(node, nodes.For) else 1)
        pending += [(child, deeper) for child in node.iter_child_nodes()]


def _node_problems(node: nodes.Node, scalars: Collection[str]) -> Iterable[TemplateProblem]:
    if isinstance(node, nodes.Filter | nodes.Test):
        yield from _unknown_filter_or_test(node)
    elif isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) and node.node.name in scalars:
        name = node.node.name
        yield problem_at(node.node.lineno, f"'{name}.{node.attr}' cannot be filled: '{name}' has no parts")
    elif isinstance(node, nodes.Name) and node.name in _JINJA_NAMES:
        yield problem_at(node.lineno, f"'{node.name}' is not available in a template")
    elif isinstance(node, nodes.For) and node.recursive:
        yield problem_at(node.lineno, "a recursive loop is not available in a template")
    elif isinstance(node, nodes.Call):
        if not (isinstance(node.node, nodes.Name) and node.node.name == "range"):
            yield problem_at(node.node.lineno, _call_message(node.node))
    elif isinstance(node, _LITERALS):
        is_assigned_to = getattr(node, "ctx", "load") == "store"
        # With names in it, a few lines could nest lists until their text exceeds the memory.
        if not is_assigned_to and not all(isinstance(part, _PARTS_OF_LITERALS) for part in all_nodes(node)):
            yield problem_at(node.lineno, "a list or mapping written in a template holds constants only")
    elif isinstance(node, nodes.Pow):
        yield problem_at(node.lineno, "'**' is not available in a template")
    elif not isinstance(node, _ACCEPTED):
        tag = _TAGS.get(type(node), type(node).__name__.lower())
        yield problem_at(node.lineno, f"'{{% {tag} %}}' is not available in a template")


def _unknown_filter_or_test(node: nodes.Filter | nodes.Test) -> Iterable[TemplateProblem]:
    kind, known = ("filter", FILTERS) if isinstance(node, nodes.Filter) else ("test", TESTS)
    if node.name not in known:
        near = near_name(node.name, known)
        hint = f"did you mean '{near}'?" if near else f"there are {', '.join(sorted(known))}"
        yield problem_at(node.lineno, f"unknown {kind} '{node.name}', {hint}")


def _call_message(called: nodes.Expr) -> str:
    if isinstance(called, nodes.Getattr):
        near = near_name(called.attr, FILTERS, cutoff=0.8)
        hint = f"write '| {near}'" if near else "use a filter"
        return f"'{called.attr}()' is not available: values have no methods here, {hint}"
    return "only range() can be called in a template"
