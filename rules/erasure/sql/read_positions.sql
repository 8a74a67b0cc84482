-- How far the log reaches, where it begins, and how far the record lane has read it.
select h.horizon, (select p.last_seq from tocsin.lane_partition p where p.lane = 'record' and p.partition = 0)
from tocsin.log_head h
