-- The lateness of committed fires in milliseconds: median, 99th percentile, worst, and their
-- number.
select percentile_cont(0.5) within group (order by late), percentile_cont(0.99) within group (order by late),
       max(late), count(*)
from (
    select extract(epoch from recorded_at - fire_at)::double precision * 1000 as late
    from tocsin.event
    where origin = 'scheduled' and seq > %(after)s and seq < %(before)s
) as l
