-- Move timers that this transaction has locked to new instants (in microseconds), by ctid.
update tocsin.timer t
set fire_at = timestamptz 'epoch' + d.at * interval '1 microsecond',
    nominal_at = timestamptz 'epoch' + d.at * interval '1 microsecond',
    attempts = 0, last_error = null
from unnest(%(ctids)s::tid[], %(at)s::bigint[]) as d (row_id, at)
where t.ctid = d.row_id
