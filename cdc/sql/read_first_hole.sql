-- The first unrecorded hole after a seq; no row if there is none. Walks the primary keys.
select first_missing, last_missing from tocsin.first_hole(%(after)s)
