-- The position of the calculation, whose `until` is null before the first window, and the watermark
-- of the data lane: null unless every partition has one. Locks nothing: only the holder of the lock
-- of the calculation writes the position.
select p.until, p.rules_seq, p.rules_begin,
       (select case when count(*) = count(l.watermark) then min(l.watermark) end
        from tocsin.lane_partition l where l.lane = 'data')
from tocsin.calc_position p
