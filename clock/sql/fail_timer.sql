-- Note the failure of a timer: it is retried after a growing delay, and parked after too many
-- failures. The nominal time is kept. No row: it was edited or cancelled meanwhile.
update tocsin.timer t
set attempts = t.attempts + 1,
    last_error = left(%(error)s, 1000),
    fire_at = %(now)s::timestamptz + least(interval '5 minutes', interval '1 second' * 2 ^ least(t.attempts, 10)),
    parked_at = case when t.attempts + 1 >= %(max_failures)s then %(now)s::timestamptz end
where t.kind = %(kind)s and t.ref = %(ref)s and t.key = %(key)s and t.generation = %(generation)s
