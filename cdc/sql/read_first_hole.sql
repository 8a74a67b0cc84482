-- The first range of seqs after `after` that is missing from the log and is not listed in
-- tocsin.log_gap. No row if there is none. Reads the primary keys in order and stops at the first
-- hole.
select first_missing, last_missing from tocsin.first_hole(%(after)s)
