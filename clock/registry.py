"""The kinds of timer that the clock realises, in the order of their turns.

Guarantee: a kind that is not listed here is not looked at, so a due timer of it wakes nobody.
"""

from clock.kinds import AnyKind
from clock.runbook_waits import RunbookWaits
from clock.sustains import Sustains
from clock.ticks import ScheduleTicks
from clock.watchdogs import Watchdogs

KINDS: tuple[AnyKind, ...] = (ScheduleTicks(), Sustains(), RunbookWaits(), Watchdogs())
