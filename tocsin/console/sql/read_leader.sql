-- The leading clock, its epoch, and the bounds of the log. Locks nothing.
select l.holder, l.epoch, l.taken_at, l.horizon, (select max(c.last_seq) from tocsin.log_commit c) as head
from tocsin.log_head l
