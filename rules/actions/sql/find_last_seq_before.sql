-- The last seq that was recorded before an instant; 0 if there is none. Reads log_commit once.
select coalesce(max(c.last_seq), 0) from tocsin.log_commit c where c.recorded_at < %(since)s
