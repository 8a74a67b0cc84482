-- The head of the record log, and the instant. Index: the key of log_commit.
select greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0)), tocsin.instant()
from tocsin.log_head h
