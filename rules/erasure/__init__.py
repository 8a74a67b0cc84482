"""Erases the data of one owner, for `tocsin forget` (docs/decisions/0033).

Guarantee: the contents of everything that was recorded for the owner before the erasure are gone from the
tables and from the streams that producers write. Records keep their seq, id and instants, so the log has
no gap, and `tocsin cdc verify` and `tocsin audit verify` still detect any other change. What is active
(open alarms, active runs and schedules, watched series) is not touched: `find_active` lists it, and an
operator ends it first.

Why not delete the records: the stream has the same sequences as the log, and a record that is missing
cannot be told from one that was lost.

On failure: an erasure is a row that stays open until everything is done. The next call continues it, and
every step can be repeated.
"""
