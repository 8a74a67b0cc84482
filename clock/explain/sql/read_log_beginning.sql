-- When the log begins, if older records were dropped. Locks nothing. Index: the key of log_commit.
select c.recorded_at
from tocsin.log_head h
join lateral (
    select m.recorded_at from tocsin.log_commit m where m.last_seq >= h.horizon order by m.last_seq limit 1
) c on h.horizon > 1
