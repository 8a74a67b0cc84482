"""A runbook as numbered nodes: which step follows which. Pure.

Guarantee: numbers follow the text of the document from 0 on, so that they mean the same wherever the document is
compiled. A node leads to a higher number, or to the end of the list it stands in: of the action, or of one
branch of a `parallel`. What a `parallel` contains are the numbers behind it up to its `last`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from schemas.documents.action import ActionDocument
from schemas.documents.runbook import RESPONSES, StepDocument
from tocsin.core.errors import InvalidInput

MAX_NODES = 200
MAX_NESTING = 8


@dataclass(frozen=True)
class Node:
    number: int
    step: StepDocument
    last: int
    """The highest number of what it contains; its own if it contains nothing."""
    following: int | None
    """What comes after it; None at the end of its list."""
    inside: int | None
    """The `parallel` in one of whose branches it stands."""
    heads: tuple[int | None, ...] = ()
    """First nodes of what it contains: then and else of a `branch`, the branches of a `parallel`."""

    @property
    def kind(self) -> str:
        return self.step.kind

    @property
    def name(self) -> str:
        """Under which its answer is kept."""
        return self.step.name or str(self.number)

    @property
    def attempts(self) -> int:
        """How often it is tried: what only passes time or chooses a way cannot be tried again."""
        return self.step.retry_policy.attempts if self.kind in RESPONSES else 1


@dataclass(frozen=True)
class Program:
    nodes: tuple[Node, ...]

    def contains(self, outer: int, number: int) -> bool:
        return outer < number <= self.nodes[outer].last


def compile_runbook(document: ActionDocument) -> Program:
    """`InvalidInput` if it is larger than anybody could follow."""
    steps = document.runbook()
    if _size(steps) > MAX_NODES:
        raise InvalidInput(
            f"the action has {_size(steps)} steps, at most {MAX_NODES} are accepted", remedy="split it"
        )
    nodes: list[Node] = []
    _number(nodes, steps, _Place(following=None, inside=None, nesting=1))
    return Program(tuple(nodes))


@dataclass(frozen=True)
class _Place:
    following: int | None
    inside: int | None
    nesting: int


def _number(nodes: list[Node], steps: Sequence[StepDocument], place: _Place) -> None:
    if place.nesting > MAX_NESTING:
        raise InvalidInput(f"steps are nested more than {MAX_NESTING} deep", remedy="flatten them")
    for position, step in enumerate(steps):
        number = len(nodes)
        end = number + _size((step,))
        following = end if position + 1 < len(steps) else place.following
        lists = _lists(step)
        # A list that is empty leads on at once.
        starts = accumulate((_size(one) for one in lists[:-1]), initial=number + 1)
        heads = tuple(start if one else following for start, one in zip(starts, lists, strict=False))
        nodes.append(Node(number, step, end - 1, following, place.inside, heads))
        within = (
            _Place(None, number, place.nesting + 1)
            if step.parallel is not None
            else _Place(following, place.inside, place.nesting + 1)
        )
        for one in lists:
            _number(nodes, one, within)


def _lists(step: StepDocument) -> tuple[tuple[StepDocument, ...], ...]:
    """The lists of steps inside a step: then and else, or the branches of a `parallel`."""
    if step.branch is not None:
        return (step.branch.then, step.branch.else_)
    return step.parallel or ()


def _size(steps: Sequence[StepDocument]) -> int:
    return len(steps) + sum(_size(one) for step in steps for one in _lists(step))
