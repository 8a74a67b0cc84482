"""The database schema: numbered SQL files, applied in order, forward only.

Guarantees: any number of processes may migrate at the same time, and one of them does the work. All
missing versions are applied in one transaction together with their checksums. A database with a
version that was edited, has another name or is unknown is rejected with an error that names it.

`versions/` is the source: one file per area, in dependency order, and one file per later change.
`schema.sql` is what they add up to, as one executable file; a test holds both equal.
"""
