"""Explains why a schedule did or did not fire, from records and the audit.

`tocsin explain` calls `records.explain_schedule`, which reads the rows. `history` derives the
versions of the schedule, and `explanation` decides; both are pure.

Guarantee: it only reads, and every statement of an explanation is a fact of a record.
"""
