"""Finds the rules that an event can match, without evaluating all of them.

Guarantee: `candidates` has every rule that would match: a rule is left out only if its condition
cannot be true for the event (see `analysis.index_of`). `matching` evaluates the candidates with one
shared activation. Both keep the order of the rules.

Why: of a thousand rules, nearly all name one schedule, rule or type. A few dictionary look-ups then
replace a thousand evaluations.
"""

from collections import defaultdict
from collections.abc import Mapping

from rules.language.cel.condition import Condition
from rules.language.cel.environment import event_activation, event_environment, event_text


class RuleIndex:
    """An index of conditions by rule name. It does not change; build a new one for other rules."""

    def __init__(self, conditions: Mapping[str, Condition]) -> None:
        self._conditions = dict(conditions)
        self._names = tuple(self._conditions)
        self._always: list[int] = []
        self._by_literal: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number, condition in enumerate(self._conditions.values()):
            if condition.index is None:
                self._always.append(number)
                continue
            for variable, literal in condition.index:
                self._by_literal[variable][literal].append(number)

    def candidates(self, event: Mapping[str, object]) -> list[str]:
        numbers = list(self._always)
        for variable, by_literal in self._by_literal.items():
            numbers += by_literal.get(event_text(event, variable), ())
        return [self._names[number] for number in sorted(numbers)]

    def matching(self, event: Mapping[str, object]) -> list[str]:
        """The rules whose condition is true. `InvalidInput` if the data of the event cannot be
        evaluated."""
        candidates = self.candidates(event)
        if not candidates:
            return []
        activation = event_activation(event_environment(), event)
        return [name for name in candidates if self._conditions[name].matches(activation)]
