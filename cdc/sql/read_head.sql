-- The head of the record log. An index look-up.
select greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0)) from tocsin.log_head h
