"""The timer kinds that the clock fires, in the order of their turns.

A kind that is not listed here is not scanned, so a due timer of it does not wake the clock.
"""

from clock.kinds import AnyTimerKind
from clock.runbook_waits import RunbookWaits
from clock.sustains import Sustains
from clock.ticks import ScheduleTicks
from clock.watchdogs import Watchdogs

KINDS: tuple[AnyTimerKind, ...] = (ScheduleTicks(), Sustains(), RunbookWaits(), Watchdogs())
