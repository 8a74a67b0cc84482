-- The first commit whose last record is after a seq. Walks the primary key.
select last_seq, recorded_at
from tocsin.log_commit
where last_seq > %(after)s
order by last_seq
limit 1
