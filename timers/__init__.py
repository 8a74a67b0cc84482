"""Timers: the working set of pending fires, the schedules that feed it, and their recurrences.

Guarantees: `(kind, ref, key)` identifies a timer, so arming is idempotent. A cancel and a fire of
one timer have one winner, decided by the row. A schedule has exactly one tick row while it is
active, and none otherwise. Arming, cancelling and scheduling once are SQL functions too, so that
any service can call them inside its own transaction; they never lock the record log.
"""
