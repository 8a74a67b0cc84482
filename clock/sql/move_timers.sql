-- Move timers whose rows this transaction has locked to their new instants (in microseconds), by their places.
update tocsin.timer t
set fire_at = timestamptz 'epoch' + d.at * interval '1 microsecond',
    nominal_at = timestamptz 'epoch' + d.at * interval '1 microsecond',
    attempts = 0, last_error = null
from unnest(%(ctids)s::tid[], %(at)s::bigint[]) as d (row_id, at)
where t.ctid = d.row_id
