"""Rule tests: the live rules in virtual time.

Guarantee: the same rules and inputs give the same log, in the same order, with the same ids and
texts, however far time is moved at once. Nothing is sent and nothing is read: no database, no
stream, no network, no real clock.

Entry points: `tocsin test` loads test files and runs them with `rule_tests`, each in a `World`.
"""

from rules.replay.log import LogEntry
from rules.replay.rule_tests.world import World

__all__ = ["LogEntry", "World"]
