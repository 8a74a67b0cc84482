"""Which rules an event could concern, without evaluating all of them.

Guarantee: `candidates` leaves out no rule that would match: a rule is skipped only when its condition
cannot be true for the event (see `analysis.index_of`). `matching` evaluates the candidates against one shared
activation. Both keep the order in which the rules were given.

Why: with a thousand rules, nearly all name one schedule, rule or type; a few dictionary look-ups then
replace a thousand evaluations.
"""

from collections import defaultdict
from collections.abc import Mapping

from rules.language.cel.condition import Condition
from rules.language.cel.environment import event_activation, event_environment, event_text


class RuleIndex:
    """The conditions by rule name; build a new one when the rules change."""

    def __init__(self, conditions: Mapping[str, Condition]) -> None:
        self._conditions = dict(conditions)
        self._names = tuple(self._conditions)
        self._always: list[int] = []
        self._by_literal: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, condition in enumerate(self._conditions.values()):
            if condition.index is None:
                self._always.append(place)
                continue
            for variable, literal in condition.index:
                self._by_literal[variable][literal].append(place)

    def candidates(self, event: Mapping[str, object]) -> list[str]:
        places = list(self._always)
        for variable, by_literal in self._by_literal.items():
            places += by_literal.get(event_text(event, variable), ())
        return [self._names[place] for place in sorted(places)]

    def matching(self, event: Mapping[str, object]) -> list[str]:
        """The rules whose condition is true; `InvalidInput` if the event's data cannot be evaluated."""
        candidates = self.candidates(event)
        if not candidates:
            return []
        activation = event_activation(event_environment(), event)
        return [name for name in candidates if self._conditions[name].matches(activation)]
