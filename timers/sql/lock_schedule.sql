-- Let edits of one schedule take turns until the transaction ends. The clock does not take this
-- lock.
select pg_advisory_xact_lock(hashtextextended('tocsin.schedule/' || %(owner)s || '/' || %(name)s, 0))
