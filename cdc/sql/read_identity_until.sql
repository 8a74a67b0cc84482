-- The last record at or before a seq, and after another: its seq and id. Index: the primary keys, backwards.
select one.seq, one.id
from (
    (select seq, id from tocsin.event where seq > %(after)s and seq <= %(until)s order by seq desc limit 1)
    union all
    (select seq, id from tocsin.action_step where seq > %(after)s and seq <= %(until)s order by seq desc limit 1)
    union all
    (select seq, id from tocsin.datapoint_calculated where seq > %(after)s and seq <= %(until)s order by seq desc limit 1)
) as one
order by one.seq desc
limit 1
