-- Calculated datapoints of a range of seq, in order. Index: primary key. Columns as schemas.calculated.CalculatedRow.
select seq, id, owner, key, ts, recorded_at, verdict, payload::text, correlation_id
from tocsin.datapoint_calculated
where seq > %(after)s and seq <= %(until)s
order by seq
