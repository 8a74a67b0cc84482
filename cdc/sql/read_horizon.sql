-- The first seq that the log still has, or the one after the head if it has none. Below `horizon`
-- partitions are dropped, or about to be.
select greatest(h.horizon, coalesce(
    least((select min(seq) from tocsin.event where seq >= h.horizon),
          (select min(seq) from tocsin.action_step where seq >= h.horizon),
          (select min(seq) from tocsin.datapoint_calculated where seq >= h.horizon)),
    greatest(h.floor, coalesce((select max(c.last_seq) from tocsin.log_commit c), 0)) + 1))
from tocsin.log_head h
