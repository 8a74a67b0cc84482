-- Edits of one schedule take turns, whoever makes them; the clock does not take part. Until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('tocsin.schedule/' || %(owner)s || '/' || %(name)s, 0))
