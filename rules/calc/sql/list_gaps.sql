-- The arrival gaps of all partitions of the data lane that reach behind an instant. Index:
-- arrival_gap_ended.
select g.began_at, g.ended_at
from tocsin.arrival_gap g
where g.ended_at > %(after)s
