-- The head of the log, and the instant. Index: log_commit's key.
select greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0)), tocsin.instant()
from tocsin.log_head h
