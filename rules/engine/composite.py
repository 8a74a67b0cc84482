"""The condition of a rule over other alarms: all of, any of, none of, n of m.

Guarantee: it depends on the number of open alarms of each rule alone, so every order of the same
transitions ends in the same result.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemas.documents.alarms_condition import AlarmReference, AlarmsDocument


class Composite:
    """Immutable."""

    def __init__(self, document: AlarmsDocument) -> None:
        self.references = frozenset(reference.rule for reference in document.references())
        self._all_of = document.clause("all_of")
        self._any_of = document.clause("any_of")
        self._none_of = document.clause("none_of")
        self._of = document.clause("of")
        self._at_least = document.at_least or 0
        self.text = " and ".join(self._clauses())
        """The condition in words, such as "all of pump-hot, flow-low"."""

    def holds(self, counts: Mapping[str, int]) -> bool:
        """Whether it holds for an owner with these numbers of open alarms, by rule."""

        def is_open(reference: AlarmReference) -> bool:
            return counts.get(reference.rule, 0) >= reference.at_least

        return (
            all(map(is_open, self._all_of))
            and (not self._any_of or any(map(is_open, self._any_of)))
            and not any(map(is_open, self._none_of))
            and sum(map(is_open, self._of)) >= self._at_least
        )

    def _clauses(self) -> Iterable[str]:
        for words, references in (
            ("all of", self._all_of),
            ("any of", self._any_of),
            (f"{self._at_least} of", self._of),
            ("none of", self._none_of),
        ):
            if references:
                yield f"{words} {', '.join(map(_name, references))}"


def _name(reference: AlarmReference) -> str:
    count = reference.at_least
    return reference.rule if count == 1 else f"{reference.rule} ({count} alarms)"
