-- Move the records of a loss behind the head of the log. Takes the lock of the log; returns how many
-- were moved and by how much; TS005 if a record is missing or a gap was recorded meanwhile.
select %(last)s::bigint - %(first)s + 1, tocsin.adopt_inside(%(first)s, %(last)s, %(reason)s, %(who)s)
