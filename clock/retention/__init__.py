"""Retention: the leading clock drops old partitions once an hour, and the rows that belong to them.

`loop` runs it in the clock, `tocsin prune` by hand. `plan` decides about partitions, `prune` drops
them, `rows` deletes the rows, and `report` reads what the last run did.

Guarantee: nothing is dropped that is younger than its age, that is not in the stream yet, that a
worker has not read, or that started a run which is active or can be retried. The newest events of
each rule are copied to another table first, so a rule that rarely fires keeps its history, and does
not keep a million other rows either. A partition is dropped whole: the horizon of the log is one
number, raised before the first table is dropped. Then the rows that belong to dropped records are
deleted (`rows`).

Why a partition is detached first, concurrently and with a short `lock_timeout`: an ordinary drop
waits for every reader while every writer waits for it.

On failure: what was done stays done, and the next run continues from there.
"""
