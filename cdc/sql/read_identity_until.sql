-- The seq and id of the last record at or before a seq, and after another. Index: the primary keys,
-- backwards.
select record.seq, record.id
from (
    (select seq, id from tocsin.event where seq > %(after)s and seq <= %(until)s order by seq desc limit 1)
    union all
    (select seq, id from tocsin.action_step where seq > %(after)s and seq <= %(until)s order by seq desc limit 1)
    union all
    (select seq, id from tocsin.datapoint_calculated where seq > %(after)s and seq <= %(until)s order by seq desc limit 1)
) as record
order by record.seq desc
limit 1
