"""Compiles templates.

Guarantee: a compiled template has only accepted parts (`structure`), and counts its loops and its
joined texts against the budget. A text that is one `{{ ... }}` and nothing else is compiled to its
value, which keeps its JSON type.
"""

from functools import lru_cache
from typing import Any, Literal

from jinja2 import Template, nodes
from jinja2.visitor import NodeTransformer

from rules.language.templates.environment import CHECK_LENGTH, COUNT_PASSES, Sandbox
from rules.language.templates.structure import structure_problems
from schemas.wire.subjects import token
from tocsin.core.errors import InvalidInput

Part = Literal["text", "html", "subject"]

_SANDBOXES: dict[Part, Sandbox] = {
    "text": Sandbox(),
    "html": Sandbox(html=True),
    "subject": Sandbox(encode=token),
}
_VALUE = "value"


def parse(source: str, part: Part = "text") -> nodes.Template:
    return _SANDBOXES[part].parse(source)


@lru_cache(maxsize=2048)
def compiled(source: str, part: Part) -> Template:
    return _compile(parse(source, part), part)


@lru_cache(maxsize=2048)
def compiled_value(source: str) -> Template | None:
    """A template that leaves the value of a text that is one `{{ ... }}` in the context; None for
    any other text."""
    tree = parse(source)
    pieces = [piece for node in tree.body for piece in getattr(node, "nodes", (None,))]
    if len(pieces) != 1 or not isinstance(pieces[0], nodes.Expr) or isinstance(pieces[0], nodes.TemplateData):
        return None
    assign = nodes.Assign(nodes.Name(_VALUE, "store", lineno=1), pieces[0], lineno=1)
    return _compile(nodes.Template([assign], lineno=1), "text")


def value_of(template: Template, data: dict[str, Any]) -> object:
    context = template.new_context(data)
    for _ in template.root_render_func(context):
        pass
    return context.vars[_VALUE]


def fixed_part(source: str) -> str | None:
    """The text with a letter for each `{{ ... }}`; None if it has tags as well."""
    text = ""
    for node in parse(source).body:
        if not isinstance(node, nodes.Output):
            return None
        text += "".join(piece.data if isinstance(piece, nodes.TemplateData) else "x" for piece in node.nodes)
    return text


def _compile(tree: nodes.Template, part: Part) -> Template:
    sandbox = _SANDBOXES[part]
    for problem in structure_problems(tree):
        raise InvalidInput(problem.message)
    tree = _BudgetTransformer().visit(tree)
    tree.set_environment(sandbox)
    return sandbox.template_class.from_code(sandbox, sandbox.compile(tree), sandbox.globals)


class _BudgetTransformer(NodeTransformer):
    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = _add_filter(node.iter, COUNT_PASSES)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        return _add_filter(node, CHECK_LENGTH)


def _add_filter(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
