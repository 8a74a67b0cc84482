"""The parts of a calc_rule while an expression of PromQL is translated.

A `Formula` is CEL text over named inputs. All inputs of one calc_rule have the same `by`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rules.importer.translation import Untranslatable

_MAX_INPUTS = 16
Groups = tuple[str, ...] | None
"""The labels that distinguish the elements of a vector. None: all labels of a series."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a calc_rule, with the keys that differ from their defaults."""

    key: str
    where: str = ""
    each: str = "last"
    over: str = ""
    offset: str = ""
    aggregate: str = "max"
    default: float | None = None

    def document(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "key": self.key,
            "where": self.where or None,
            "each": None if self.each == "last" else self.each,
            "over": self.over or None,
            "offset": self.offset or None,
            "aggregate": None if self.aggregate == "sum" else self.aggregate,
            "default": self.default,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Formula:
    """CEL text, as a sequence of texts and of the inputs that stand between them."""

    parts: tuple[str | Input, ...]
    groups: Groups = ()
    is_scalar: bool = False
    """Whether it is one number without labels, such as a literal."""

    @property
    def only_input(self) -> Input | None:
        """The input, if the formula is one input and nothing else."""
        return self.parts[0] if len(self.parts) == 1 and isinstance(self.parts[0], Input) else None

    @property
    def operand(self) -> tuple[str | Input, ...]:
        """The parts, in parentheses unless they are one input, name or number."""
        first = self.parts[0]
        is_one = len(self.parts) == 1 and (isinstance(first, Input) or " " not in first)
        return self.parts if is_one else ("(", *self.parts, ")")

    @property
    def inputs(self) -> list[Input]:
        return [part for part in self.parts if isinstance(part, Input)]

    def of_input(self, change: Callable[[Input], Input]) -> Formula:
        """The same formula, each of its inputs changed."""
        parts = tuple(change(part) if isinstance(part, Input) else part for part in self.parts)
        return replace(self, parts=parts)

    def render(self) -> tuple[str, dict[str, Input]]:
        """The CEL text and its inputs, which are named `a`, `b`, ...; the same input has one name."""
        names: dict[Input, str] = {}
        for given in self.inputs:
            names.setdefault(given, chr(ord("a") + len(names)))
        if len(names) > _MAX_INPUTS:
            raise Untranslatable(
                f"it reads {len(names)} different inputs, and a calc_rule has at most {_MAX_INPUTS}"
            )
        text = "".join(part if isinstance(part, str) else names[part] for part in self.parts)
        return text, {name: given for given, name in names.items()}


def number(value: float) -> Formula:
    text = repr(float(value))
    return Formula((text if "e" in text or "." in text else f"{text}.0",), is_scalar=True)


def joined_groups(left: Groups, right: Groups) -> Groups:
    """The groups of an operation on two vectors whose label sets must be equal."""
    if left is None or right is None:
        return right if left is None else left
    if sorted(left) != sorted(right):
        raise Untranslatable(
            f"it joins groups by ({', '.join(left)}) with groups by ({', '.join(right)}): a calc_rule has one 'by'"
        )
    return left
