"""A compiled runbook: numbered nodes, each with the node that follows it.

Guarantee: numbers follow the text of the document from 0 on, so they are the same wherever the
document is compiled. A node leads to a higher number, or to the end of its list: of the action, or
of one branch of a `parallel`. A `parallel` contains the numbers after its own, up to its `last`. The
steps of `finally` have the numbers after all others.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from schemas.documents.action import ActionDocument
from schemas.documents.runbook import RESPONSES, StepDocument
from schemas.documents.runbook.notify import NotificationAction
from tocsin.core.errors import InvalidInput

MAX_NODES = 200
MAX_NESTING = 8


@dataclass(frozen=True)
class Node:
    number: int
    step: StepDocument
    last: int
    """The highest number that it contains; its own if it contains no steps."""
    following: int | None
    """Number of the next node; None at the end of its list."""
    inside: int | None
    """Number of the `parallel` that contains it in a branch."""
    heads: tuple[int | None, ...] = ()
    """First nodes of the lists that it contains: then and else of a `branch`, the branches of a
    `parallel`."""

    @property
    def kind(self) -> str:
        return self.step.kind

    @property
    def name(self) -> str:
        """The name of its answer."""
        return self.step.name or str(self.number)

    @property
    def attempts(self) -> int:
        """Largest number of attempts. Flow steps have one."""
        return self.step.retry_policy.attempts if self.kind in RESPONSES else 1


@dataclass(frozen=True)
class Program:
    nodes: tuple[Node, ...]
    first_final: int | None = None
    """Number of the first step of `finally`."""

    def is_final(self, number: int) -> bool:
        """Whether a step belongs to `finally`."""
        return self.first_final is not None and number >= self.first_final

    def contains(self, outer: int, number: int) -> bool:
        return outer < number <= self.nodes[outer].last


def compile_runbook(document: ActionDocument | NotificationAction) -> Program:
    """`InvalidInput` if the runbook has too many steps or is nested too deep."""
    steps, final_steps = document.runbook(), document.finally_ or ()
    size = _size(steps) + _size(final_steps)
    if size > MAX_NODES:
        raise InvalidInput(
            f"the action has {size} steps, at most {MAX_NODES} are accepted", remedy="split it"
        )
    nodes: list[Node] = []
    whole = _ListContext(following=None, inside=None, nesting=1)
    _number(nodes, steps, whole)
    first_final = len(nodes) if final_steps else None
    _number(nodes, final_steps, whole)
    return Program(tuple(nodes), first_final)


@dataclass(frozen=True)
class _ListContext:
    following: int | None
    inside: int | None
    nesting: int


def read_document(document: Mapping[str, Any]) -> ActionDocument | NotificationAction:
    """The document of a run. Raises `ValidationError` if this version of Tocsin cannot read it."""
    model = NotificationAction if "notify" in document else ActionDocument
    return model.model_validate(document)


def _number(nodes: list[Node], steps: Sequence[StepDocument], context: _ListContext) -> None:
    if context.nesting > MAX_NESTING:
        raise InvalidInput(f"steps are nested more than {MAX_NESTING} deep", remedy="flatten them")
    for position, step in enumerate(steps):
        number = len(nodes)
        end = number + _size((step,))
        following = end if position + 1 < len(steps) else context.following
        lists = _lists(step)
        starts = accumulate((_size(inner) for inner in lists[:-1]), initial=number + 1)
        # An empty list has no first node: the run continues after the step.
        heads = tuple(start if inner else following for start, inner in zip(starts, lists, strict=False))
        nodes.append(Node(number, step, end - 1, following, context.inside, heads))
        inside = (
            _ListContext(None, number, context.nesting + 1)
            if step.parallel is not None
            else _ListContext(following, context.inside, context.nesting + 1)
        )
        for inner in lists:
            _number(nodes, inner, inside)


def _lists(step: StepDocument) -> tuple[tuple[StepDocument, ...], ...]:
    """The lists of steps inside a step: then and else, or the branches of a `parallel`."""
    if step.branch is not None:
        return (step.branch.then, step.branch.else_)
    return step.parallel or ()


def _size(steps: Sequence[StepDocument]) -> int:
    return len(steps) + sum(_size(inner) for step in steps for inner in _lists(step))
