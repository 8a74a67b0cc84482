"""Timers: the working set of pending fires, the schedules that feed it, and their recurrence.

Guarantees: `(kind, ref, key)` names a timer, so arming is idempotent; a cancel and a fire of one timer have
one winner, decided by the row; a schedule has exactly one tick row while it is active, and none otherwise.
Arming, cancelling and scheduling once are SQL functions too, so that any service can do them inside its own
transaction; they never touch the record log.
"""
