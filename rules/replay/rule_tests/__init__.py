"""Rules in virtual time: the live engine, admission and runbooks, around a clock that moves when it is told to.

Guarantee: the same rules and inputs give the same happenings, in the same order, with the same ids and texts, however
far time is moved at once. Nothing is sent and nothing is read: no database, no stream, no network, no real clock.

Why the live code: a rule test that passes says something about production only if it runs what production runs. What is
simulated here is the rest: the order in which things come due, and what the world answers to a step.
"""

from rules.replay.rule_tests.log import Happening
from rules.replay.rule_tests.world import World

__all__ = ["Happening", "World"]
