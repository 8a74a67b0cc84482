-- The results of some calc_rules whose windows ended in a range, in order. Locks nothing. Index:
-- datapoint_calculated_result.
select c.owner, c.key, c.ts,
       case when jsonb_typeof(c.payload -> 'value') = 'number' then (c.payload -> 'value')::float8
            when c.payload -> 'value' = 'true' then 1.0::float8 else 0.0::float8 end,
       c.payload -> 'labels'
from tocsin.datapoint_calculated c
where c.kind = 'calc' and split_part(c.key, '{', 1) = any (%(keys)s::text[])
  and c.ts > %(begin)s and c.ts <= %(end)s
order by c.ts, c.seq
