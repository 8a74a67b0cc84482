-- A page of the datapoints of one series, the newest first, if its owner is one of some patterns.
-- Locks nothing. Index: datapoint_series.
select arrived_at, stream_seq, "position", ts, value, labels
from tocsin.datapoint
where owner = %(owner)s and key = %(key)s and tocsin.owner_matches(owner, %(owners)s)
  and (%(after_arrived_at)s::timestamptz is null
       or (arrived_at, stream_seq, "position")
          < (%(after_arrived_at)s::timestamptz, %(after_stream_seq)s::bigint, %(after_position)s::integer))
order by arrived_at desc, stream_seq desc, "position" desc
limit %(limit)s
