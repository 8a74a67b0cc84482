-- The time since the commit of the oldest record after a seq, in seconds; 0 if there is none.
-- Index: log_commit_pkey.
select coalesce(
    (select extract(epoch from tocsin.instant() - c.recorded_at)::double precision
     from tocsin.log_commit c where c.last_seq > %(seq)s order by c.last_seq limit 1),
    0)
