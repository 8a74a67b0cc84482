"""The stage of one fault: the installation, the part that is hit, and the evidence that it was hit."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.faults.chaos.installation import Installation
from tests.faults.chaos.link import Counts, Link
from tests.faults.chaos.signals import doctor_signals, leader, metric_signals

_LED = ("clock", "cdc")
_WITHIN_S = 30.0


@dataclass
class Stage:
    chaos: Installation
    part: str
    seconds: float
    chance: random.Random
    evidence: dict[str, int] = field(default_factory=dict)
    """Each number must be above 0: otherwise the fault did not happen."""
    doctor: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    is_observed: bool = False
    operator: list[str] = field(default_factory=list)
    """What an operator had to do beyond ending the fault."""

    def victim(self) -> str:
        """The process to hit: the leader if the part has one, any process otherwise."""
        names = self.chaos.names_of(self.part)
        if self.part not in _LED:
            return self.chance.choice(names)
        leaders: list[str] = []

        def leads() -> bool:
            name = leader(self.chaos, self.part)
            leaders[:] = [] if name is None else [name]
            return name is not None

        self.chaos.until(leads, f"a {self.part} leads", _WITHIN_S)
        return leaders[0]

    def link(self, server: str) -> Link:
        return self.chaos.links[self.part, server]

    def counts(self, server: str) -> Counts:
        return self.link(server).counts

    def wait(self) -> None:
        """Let the fault last: half of its time, a look at the signals, and the rest."""
        self.chaos.wait(self.seconds / 2)
        self.observe()
        self.chaos.wait(self.seconds / 2)

    def observe(self) -> None:
        self.is_observed = True
        self.metrics += metric_signals(self.chaos)
        self.doctor += doctor_signals(self.chaos)
