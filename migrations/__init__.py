"""The database's schema: forward-only numbered SQL, applied under a lock, checksummed.

Guarantees: any number of processes may migrate at once, one does the work; all missing versions are applied
in one transaction together with their records; a version that was edited after it was applied, or that this
program does not know, stops everything with a sentence that names it.
`schema.sql` is what all versions add up to; a test holds it equal.
"""
