"""Actions in Postgres: what a step's outcome writes, what wakes a step, what ends an action before its time.

Guarantees: an outcome is committed together with what follows from it, once per (action, step, attempt): whoever comes
second finds the action moved on, and changes nothing. A cancelled action takes no outcome, and none of its
timers and waits is left. Every transaction goes through the phases of the house: timers, entities, one append.

Why the version decides: branches of a `parallel` end at the same moment on different workers. What was read is the
base of what is written, and a row that has moved on refuses it; the second one reads again.
"""
